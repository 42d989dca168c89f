// CPUs as a strip of boxes.

import { expect, test } from 'vitest';

import { placeCpus } from './strip';

test('numbers that a machine lacks stay empty, whatever the order of the list', () => {
  expect(placeCpus('4,5,1,0').map(({ cpu, column }) => [cpu, column])).toEqual([
    [0, 0],
    [1, 1],
    [4, 4],
    [5, 5],
  ]);
  expect(placeCpus('31-33').map(({ column, row }) => [column, row])).toEqual([
    [0, 0],
    [1, 0],
    [2, 0],
  ]);
});
