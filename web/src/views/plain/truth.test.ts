// Predictions beside the truth.

import { expect, test } from 'vitest';

import type { ChartPlan } from '../../chart';
import { withTruth } from './truth';

const PLAN: ChartPlan = {
  name: '',
  summary: '',
  panel: {
    height: 1,
    x: { title: '' },
    y: { title: '', names: ['a'] },
    series: [{ points: [] }],
  },
};
const row = {
  label: 'a',
  cost: 2,
  truth: 2.02,
  true_ratio: 0.88,
  error: -0.01,
};

test('a prediction is drawn beside the truth, if that is known', () => {
  const plan = withTruth(PLAN, [row], String);
  expect(plan.panel?.series[1]?.points[0]).toMatchObject({ x: 0.88, y: 0 });
  expect(plan.table?.rows).toEqual([['a', '2', '2.02', '−1.0 %']]);
  expect(withTruth(PLAN, [{ label: 'a', cost: 2 }], String)).toBe(PLAN);
});
