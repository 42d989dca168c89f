// The rows of claims.

import { expect, test } from 'vitest';

import { claimRow, claimRows, describeVerdicts } from './shape';

test('untried claims have a dash, unknown verdicts are unchanged', () => {
  expect(
    claimRow({ claim: 'c', reported: '14', measured: null, verdict: 'given' }),
  ).toEqual(['c', '○\u00a0input', '14', '–', '']);
  expect(claimRow({ verdict: 'newer' as 'given' })[1]).toBe('newer');
  expect(
    claimRows({
      reports: [
        {
          name: 'r',
          experiments: [{ name: 'e', claims: [{ claim: 'c' }] }, {}],
        },
      ],
    }),
  ).toEqual([['c', '–', '–', '–', '', 'e', '']]);
});

test('contradicted claims are first, inputs last', () => {
  const claims = (['given', 'reproduced', 'contradicted'] as const).map(
    (verdict) => ({ claim: verdict, verdict }),
  );
  const rows = claimRows({ reports: [{ experiments: [{ claims }] }] });
  expect(rows.map(([claim]) => claim)).toEqual([
    'contradicted',
    'reproduced',
    'given',
  ]);
});

test('an experiment counts its verdicts', () => {
  const claims = (['given', 'reproduced', 'reproduced'] as const).map(
    (verdict) => ({ verdict }),
  );
  expect(describeVerdicts({ claims })).toBe('✓ 2 reproduced, ○ 1 input');
});
