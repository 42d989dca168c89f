// The data of a bench's drawings.

import { expect, test } from 'vitest';

import type { BenchKernel } from '../../records';
import {
  cellRows,
  rankPlacements,
  scalingSummary,
  smtYields,
  speedSeries,
  hasScalingChart,
  withGaps,
} from './shape';

const KERNEL: BenchKernel = {
  kernel: 'pi',
  question: 'scaling',
  baseline: '1 @ a',
  cells: [
    {
      name: '4 @ a',
      threads: 4,
      family: 'a',
      speed_up: { value: 3.6, low: 3.5, high: 3.7 },
      efficiency: 0.9,
    },
    {
      name: '1 @ a',
      threads: 1,
      family: 'a',
      seconds: { value: 2, low: null, high: null },
    },
    {
      name: '2 @ b',
      threads: 2,
      family: 'b',
      speed_up: { value: 1.5, low: null, high: 1.6 },
    },
    {
      name: '8 @ b',
      threads: 8,
      family: 'b',
      speed_up: { value: 9 },
      invalid: 'exit 1',
    },
  ],
  smt_yield: { value: 0.2, low: 0.1, high: null },
};

test('series have speeds by placement and threads, relative to the baseline, without invalid cells', () => {
  expect(speedSeries(KERNEL)).toEqual([
    {
      family: 'a',
      points: [
        { threads: 1, value: 1, low: null, high: null, cell: '1 @ a' },
        { threads: 4, value: 3.6, low: 3.5, high: 3.7, cell: '4 @ a' },
      ],
    },
    {
      family: 'b',
      points: [
        { threads: 2, value: 1.5, low: null, high: null, cell: '2 @ b' },
      ],
    },
  ]);
  expect(hasScalingChart(KERNEL)).toBe(true);
  expect(hasScalingChart({ kernel: 'x', question: 'scaling', cells: [] })).toBe(
    false,
  );
  expect(scalingSummary(KERNEL)).toContain(
    '4 threads at a do 3.60 (3.50 to 3.70) times the work of 1 thread at a.',
  );
});

test('no line is drawn across numbers of threads that were not measured', () => {
  const point = (threads: number) => ({
    threads,
    value: threads,
    low: null,
    high: null,
    cell: null,
  });
  const valuesOf = (...threads: number[]) =>
    withGaps(threads.map(point)).map(({ value }) => value);
  expect(valuesOf(1, 8)).toEqual([1, null, 8]);
  expect(valuesOf(1, 2, 4)).toEqual([1, 2, 4]);
});

test('placements are those of the threads at which they differ most', () => {
  const cell = (threads: number, placement: string, value: number | null) => ({
    name: `${threads} @ ${placement}`,
    threads,
    placement,
    speed_up: value === null ? null : { value },
  });
  const cells = [
    cell(2, 'compact', 1.2),
    cell(2, 'spread', 1.9),
    cell(2, 'failed', null),
    cell(4, 'spread', 3),
  ];
  const kernel = { ...KERNEL, cells };
  const names = (more: Partial<BenchKernel>) => {
    const [threads, all] = rankPlacements({ ...kernel, ...more });
    return [threads, ...all.map(({ placement }) => placement)];
  };
  expect(names({})).toEqual([4, 'spread']);
  const placement_difference = { threads: 2 };
  expect(names({ placement_difference })).toEqual([2, 'spread', 'compact']);
});

test('an interval with one end is left out', () => {
  expect(smtYields({ kernels: [KERNEL] })).toEqual([
    { kernel: 'pi', value: 0.2, low: null, high: null },
  ]);
  expect(
    smtYields({
      kernels: [{ ...KERNEL, question: 'smt_machine' }],
    })[0]!.kernel,
  ).toBe('pi, all cores');
});

test('unknown figures stay empty', () => {
  expect(cellRows(KERNEL)[1]).toEqual([
    '1 @ a (baseline)',
    null,
    '2.00 s',
    null,
    null,
    null,
    null,
  ]);
});
