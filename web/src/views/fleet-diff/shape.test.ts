// Two groups of machines.

import { expect, test } from 'vitest';

import { readFleetDiff } from './record';
import { differs, largestFirst } from './shape';

const diff = readFleetDiff({
  schema: 'pinwise.fleet-diff/1',
  a: { fleet: 'f', nodes: 3 },
  b: null,
  figures: [
    [1.2, 1.1, 1.3],
    [0.4, 0.3, 0.5],
    [null, null, null],
    [1.01, 0.9, 1.1],
    [2, null, null],
  ].map(([ratio, low, high], at) => ({
    step: '',
    name: `${at}`,
    ratio,
    low,
    high,
  })),
});

test('the largest ratio is first, up or down; what is unknown is last', () => {
  expect(largestFirst(diff.figures).map((figure) => figure.label)).toEqual([
    '1',
    '4',
    '0',
    '3',
    '2',
  ]);
});

test('a figure differs where its interval leaves 1 out', () => {
  expect(diff.figures.map(differs)).toEqual([true, true, null, false, null]);
  expect(diff.b).toEqual({ fleet: '', group: '', nodes: null });
});
