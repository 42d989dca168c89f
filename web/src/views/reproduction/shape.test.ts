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

test('claims that differ in a number alone share a row', () => {
  const claims = [3, 4, 5].map((ms) => ({
    claim: `a sender every ${ms} ms`,
    reported: 'about 1.2 s',
    measured: `1.${ms} s`,
    measured_value: 1 + ms / 10,
    tolerance: '0.25 s',
    verdict: 'consistent' as const,
  }));
  expect(claimRows([{ claims }]).slice(1)).toEqual([
    [
      '– a sender every 3 to 5 ms (3 claims)',
      'about\u00a01.2\u00a0s',
      '1.3\u00a0s\u00a0to\u00a01.5\u00a0s',
      '0.25 s',
      '≈\u00a0consistent',
    ],
  ]);
});
