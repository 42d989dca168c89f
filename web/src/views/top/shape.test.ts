// Threads of the live view.

import { expect, test } from 'vitest';

import { splitIdle } from './shape';

test('threads that neither used nor waited for a CPU are apart', () => {
  const threads = [
    { name: 'a', cpu_percent: 99 },
    { name: 'b', cpu_percent: 0, wait_percent: 2 },
    { name: 'c', cpu_percent: 0.001, wait_percent: null },
  ];
  const names = (all: readonly { name?: string | null }[]) =>
    all.map(({ name }) => name);
  expect(splitIdle(threads).map(names)).toEqual([['a', 'b'], ['c']]);
  expect(splitIdle(threads.slice(2)).map(names)).toEqual([['c'], []]);
});
