// Claims in words.

import { expect, test } from 'vitest';

import { claimRow, claimRows } from './shape';

test('what was not tried has a dash, an unknown verdict stands as it is', () => {
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

test('contradicted claims stand first, inputs last', () => {
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
