// CPUs as a strip of boxes.

import { expect, test } from 'vitest';

import { placeCpus } from './strip';

test('numbers that a machine lacks stay empty, whatever the order of the list', () => {
  expect(
    placeCpus({ allowed: '4,5,1,0' }).map(({ cpu, x }) => [cpu, x]),
  ).toEqual([
    [0, 0],
    [1, 11],
    [4, 44],
    [5, 55],
  ]);
  expect(placeCpus({ allowed: '31-33' }).map(({ x, row }) => [x, row])).toEqual(
    [
      [0, 0],
      [11, 0],
      [22, 0],
    ],
  );
});

test('cores and last-level caches are apart, siblings together', () => {
  const places = placeCpus({ allowed: '0-7', layout: ['0,4 1,5', '2,6 3,7'] });
  expect(places.map(({ cpu, x }) => [cpu, x])).toEqual([
    [0, 0],
    [4, 11],
    [1, 25],
    [5, 36],
    [2, 58],
    [6, 69],
    [3, 83],
    [7, 94],
  ]);
  // A layout that lacks a CPU does not hide it.
  expect(placeCpus({ allowed: '0-2', layout: ['0 1'] })).toHaveLength(3);
});

test('a cache that does not fit in a row begins a new one', () => {
  const layout = ['0-15', '16-31', '32-47'].map((cpus) => cpus);
  const cores = (first: number) =>
    Array.from({ length: 16 }, (_, at) => `${first + at}`).join(' ');
  const places = placeCpus({
    allowed: layout.join(','),
    layout: [cores(0), cores(16), cores(32)],
  });
  expect(places.map(({ row }) => row).filter((row) => row === 0)).toHaveLength(
    16,
  );
  expect(places.at(-1)?.row).toBe(2);
});
