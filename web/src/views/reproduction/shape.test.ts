// The rows of claims.

import { expect, test } from 'vitest';

import { claimRows, untestedClaims } from './shape';

const EXPERIMENTS = [
  {
    name: 'budget',
    question: 'how long it spins',
    claims: [
      { claim: 'input', reported: '14', verdict: 'given', why: 'sets it' },
      {
        claim: '24 cores',
        reported: '19 ms',
        measured: '19.3 ms',
        tolerance: '0.5 ms',
        why: '0.33 ms off, 0.5 allowed',
        verdict: 'reproduced',
      },
      { claim: 'a loss', why: 'below a tenth', verdict: 'contradicted' },
      { claim: 'newer', verdict: 'newer' as 'given' },
    ],
  },
  { name: 'pause', claims: [{ claim: 'c', verdict: 'not_here' }] },
  {},
] as const satisfies Parameters<typeof claimRows>[0];

test('tested claims follow the question, each with its tolerance or condition', () => {
  expect(claimRows(EXPERIMENTS)).toEqual([
    ['budget: how long it spins', '', '', '', ''],
    ['– 24 cores', '19\u00a0ms', '19.3\u00a0ms', '0.5 ms', '✓\u00a0reproduced'],
    [
      '– a loss',
      undefined,
      undefined,
      'below a tenth',
      '✗\u00a0not reproduced',
    ],
    ['– newer', undefined, undefined, undefined, 'newer'],
  ]);
});

test('untested claims say why', () => {
  expect(untestedClaims(EXPERIMENTS)).toEqual([
    'input: 14 (sets it)',
    'c: – ()',
  ]);
});
