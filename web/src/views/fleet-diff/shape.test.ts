// Two groups of machines.

import { expect, test } from 'vitest';

import { attributionTable } from '../profile/attribution';
import type { FleetAttribution, FleetFigureChange } from '../../records';
import { withLabels } from '../fleet-report/record';
import {
  betterMark,
  chooseDrawn,
  describeIntervals,
  describeSides,
  differs,
  largestFirst,
} from './shape';

const figures = withLabels<FleetFigureChange>(
  [
    [1.2, 1.1, 1.3],
    [0.4, 0.3, 0.5],
    [null, null, null],
    [1.01, 0.9, 1.1],
    [2, null, null],
  ].map(([ratio = null, low = null, high = null], at) => ({
    step: '',
    name: `${at}`,
    ratio,
    low,
    high,
    // The second is not certain once adjusted for the number of figures.
    differs: at === 0,
  })),
);

test('the largest ratio is first, up or down; unknown ones are last', () => {
  expect(largestFirst(figures).map((figure) => figure.label)).toEqual([
    '1',
    '4',
    '0',
    '3',
    '2',
  ]);
});

test('a figure differs if the record says so: intervals are not adjusted', () => {
  expect(figures.map(differs)).toEqual([true, false, null, false, null]);
});

test('figures that differ are drawn; without any, the largest changes', () => {
  const drawn = (all: typeof figures): string[] =>
    chooseDrawn(largestFirst(all), 2).map((figure) => figure.label);
  expect(drawn(figures)).toEqual(['0']);
  expect(drawn(figures.slice(1))).toEqual(['1', '4']);
});

test('a difference is attributed to its parts', () => {
  const found: FleetAttribution = {
    step: 'service',
    of: 'wall',
    parts: [
      {
        name: 'longer spin-waits',
        delta_s: { value: 0.012, low: 0.01, high: 0.014 },
        share: { value: 0.6, low: 0.5, high: 0.7 },
        detail: 'a PAUSE takes 40 ns, not 10',
      },
      {
        name: 'frequency',
        delta_s: { value: 2e-7, low: 1e-7, high: 8e-7 },
        share: { value: 0.00001, low: 0, high: 0.0001 },
      },
      {
        part: 'memory',
        name: 'memory',
        delta_s: null,
        detail: 'no counters',
      },
    ],
  };
  expect(attributionTable(found)).toMatchObject({
    caption: 'Elapsed per unit of work; below 0.1 %: frequency',
    rows: [
      [
        'longer spin-waits',
        '+12.0 ms',
        '+10.0 ms to +14.0 ms',
        '60.0 %',
        'a PAUSE takes 40 ns, not 10',
      ],
      ['code that reads memory', 'not known', null, null, 'no counters'],
    ],
  });
});

test('intervals that exclude 1 are said not to be corrected', () => {
  expect(describeIntervals(figures)).toBe(
    '↑ more is better, ↓ less is better. Lines: 95 % interval of each figure alone. Corrected for 5 figures, 1 differs by 1 % or more (filled).',
  );
  const none = figures
    .slice(1)
    .map((figure) => ({ ...figure, p_adjusted: 0.076 }));
  expect(describeIntervals(none)).toBe(
    '↑ more is better, ↓ less is better. Lines: 95 % interval of each figure alone. Corrected for 4 figures, none is shown to differ by 1 % or more (lowest adjusted p 0.076).',
  );
});

test('sides share the name of an equal group', () => {
  const side = (fleet: string, group: string, nodes: number) => ({
    fleet,
    group,
    nodes,
  });
  expect(
    describeSides({ a: side('old', 'EPYC', 12), b: side('new', 'EPYC', 1) }),
  ).toBe('A: old (12 nodes). B: new (1 node). Both: EPYC.');
  expect(
    describeSides({ a: side('old', 'EPYC', 2), b: side('new', 'Xeon', 2) }),
  ).toBe('A: old / EPYC (2 nodes). B: new / Xeon (2 nodes).');
  expect(betterMark({ better: 'lower' })).toBe(' ↓');
  expect(betterMark({})).toBe('');
});
