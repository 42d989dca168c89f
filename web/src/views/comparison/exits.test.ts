// Warnings of runs that failed.

import { expect, test } from 'vitest';

import { findExits } from './exits';

const arm = (...exits: (number | null)[]) => ({
  runs: exits.map((exit) => ({ exit })),
});

test('runs that exited with another status than 0 are a warning', () => {
  const said = (...arms: object[]) => findExits({ arms })?.sentence;
  expect(said(arm(1, 1), arm(1))).toBe('All 3 runs exited with status 1.');
  expect(said(arm(0, 2, null), arm(1, 2))).toBe(
    '3 of 5 runs exited with status 2 or 1.',
  );
  expect(said(arm(1, 2, 3, 4))).toBe(
    'All 4 runs exited with status 1 or 2 or 3 ….',
  );
  expect(said(arm(0, null))).toBeUndefined();
  expect(said()).toBeUndefined();
});

test('an arm that is shown as failed gives no second warning', () => {
  expect(findExits({ arms: [{ ...arm(1), invalid: 'exit 1' }] })).toBeNull();
});
