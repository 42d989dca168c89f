// The progress of a running comparison.

import { expect, test } from 'vitest';

import type { Comparison, PlanRecord, RunRecord } from '../../records';
import {
  intervalSteps,
  intervalPlan,
  readProgress,
  progressWords,
} from './running';
import { type Axis, panelsOf } from '../../plot';

const run = (value: number, block: number, at: number): RunRecord => ({
  phase: 'confirmation',
  block,
  at_s: at,
  wall_s: 1,
  metric: { value, cost: value },
});

const record = (plan: PlanRecord, blocks = 8): Comparison => ({
  schema: 'pinwise.comparison/1',
  baseline: 'a',
  metric: { name: 'wall', label: 'time' },
  plan,
  arms: ['a', 'b'].map((name, arm) => ({
    name,
    runs: Array.from({ length: blocks }, (_, block) =>
      run(arm === 0 ? 10 : 9, block, 2 * block + arm),
    ),
  })),
});

test('elapsed and remaining time are worded as in the terminal', () => {
  expect(
    progressWords(readProgress(record({ budget_s: 60, max_runs: null }))),
  ).toBe('block 9 · 16.0 s of 60.0 s · 16 runs · at most 44 s left');
  const cut = record({ max_runs: 10 });
  cut.arms![0]!.other_runs = [{ ...run(10, 8, 19), phase: 'dropped' }];
  expect(progressWords(readProgress(cut))).toBe(
    'block 9 · 20.0 s · 16 runs · at most 5.0 s left',
  );
  // The nearer limit counts: two more blocks of 2 s.
  expect(readProgress(record({ budget_s: 60, max_runs: 10 })).left).toBe(4);
  expect(progressWords(readProgress(record({})))).toBe(
    'block 9 · 16.0 s · 16 runs',
  );
  expect(progressWords(readProgress({ schema: 'pinwise.comparison/1' }))).toBe(
    'block 1 · 0 s · 0 runs',
  );
});

test('a median has an interval from the sixth block on, which narrows', () => {
  const ratios = Array.from(
    { length: 30 },
    (_, at) => 1 + ((at * 7) % 30) / 100,
  );
  const steps = intervalSteps(ratios);
  expect(steps.slice(0, 5).every(({ low }) => low === null)).toBe(true);
  // With six values, it is from the least to the greatest.
  const six = [...ratios.slice(0, 6)].sort((a, b) => a - b);
  expect([steps[5]!.low, steps[5]!.high]).toEqual([six[0], six[5]]);
  // With thirty, from rank 10 to rank 21 (Conover 1999, table of the sign test).
  expect([steps[29]!.low, steps[29]!.high]).toEqual([1.09, 1.2]);
  expect(intervalSteps(Array.from({ length: 2000 }, () => 1)).length).toBe(40);
});

test('the plan has a line for each arm but the baseline', () => {
  const plan = intervalPlan(record({}))!;
  const [panel] = panelsOf(plan, 600);
  expect(panel!.series.map((one) => one.name)).toEqual(['b']);
  expect(panel!.x.ends).toEqual([0, 10]);
  expect((panel!.y as Axis).ends).toEqual([1 / 1.2, 1.2]);
  expect(plan.table!.rows).toEqual([['b', 8, '−10.0 % (−10.0 % to −10.0 %)']]);
  expect(intervalPlan(record({}, 0))).toBe(null);
});
