// Texts on the programs of a joint plan.

import { expect, test } from 'vitest';

import { limitText } from './joint';

test('a limit has its direction, unit and state', () => {
  const metric = { unit: 'ms', better: 'lower' };
  expect(limitText({ limit: 20, metric, placed_limit: 'held' })).toBe(
    '≤ 20.0 ms: held',
  );
  const limits = { placed_limit: 'held', default_limit: 'broken' } as const;
  expect(limitText({ limit: 20, metric, ...limits })).toBe(
    '≤ 20.0 ms: held; broken with os-default',
  );
  expect(
    limitText({ limit: 20, metric, ...limits, placed_limit: 'broken' }),
  ).toBe('≤ 20.0 ms: broken in both');
  const rate = { unit: '', better: 'higher' };
  expect(limitText({ limit: 5000, metric: rate })).toMatch(/^≥ 5/);
  expect(limitText({ metric })).toBe('');
});
