// Claims in words.

import { expect, test } from 'vitest';

import { claimRow, claimRows, sentence } from './shape';

test('claims are counted by verdict', () => {
  expect(
    sentence({
      counts: { reproduced: 3, contradicted: 1, given: 2 },
    }),
  ).toBe(
    '3 of 4 claims that were tried came out as reported; 2 given, 0 not here.',
  );
});

test('what was not tried has a dash, an unknown verdict stands as it is', () => {
  expect(
    claimRow({ claim: 'c', reported: '14', measured: null, verdict: 'given' }),
  ).toEqual(['c', '14', '–', '○\u00a0given', '']);
  expect(claimRow({ verdict: 'newer' as 'given' })[3]).toBe('newer');
  expect(
    claimRows({
      reports: [
        {
          name: 'r',
          experiments: [{ name: 'e', claims: [{ claim: 'c' }] }, {}],
        },
      ],
    }),
  ).toEqual([['c', '–', '–', '–', '', 'e', 'r']]);
});
