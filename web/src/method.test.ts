// What to do next.

import { expect, test } from 'vitest';

import { splitCommand } from './method';

test('a command ends the advice, or stays in its sentence', () => {
  expect(splitCommand('See it: pinwise spin attach -- ./a')).toEqual([
    'See it',
    'pinwise spin attach -- ./a',
  ]);
  expect(
    splitCommand('Let it park: pinwise spin advise gives it; see below.'),
  ).toBeNull();
  expect(splitCommand('Change nothing.')).toBeNull();
});
