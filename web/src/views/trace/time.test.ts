// What threads spent their time on, of a trace without a timeline.

import { expect, test } from 'vitest';

import type { TraceRecord } from '../../records';
import * as shape from './shape';
import { timePlan } from './time';

const which = '--tier bpf shows which (pinwise trace tiers).';

const POLLED: TraceRecord = {
  tier: 'proc',
  totals: { life_s: 1, cpu_s: 0.7 },
  waits: { total_s: 0.2 },
  answer: {
    sentence: '',
    advice: `See where its CPU time goes: pinwise profile. ${which}`,
  },
  findings: [
    { check: 'queued', advice: which },
    { check: 'lock_waits', evidence: { seconds: 0.06 } },
  ],
  blocked: [
    {
      threads: [
        {
          thread: 7,
          parts: [{ what: 'mutex' }, { what: 'timer' }],
          places: [{ what: 'mutex', place: 'book' }],
        },
      ],
    },
  ],
  threads: [{ thread: 7 }],
};

test('the time of threads is divided, and what is left is blocked', () => {
  const series = timePlan(POLLED)?.panel?.series;
  expect(series?.map(({ name }) => name)).toEqual([
    'running 70.0 %',
    'queued for a CPU 20.0 %',
    'blocked in a lock 6.0 %',
    'blocked otherwise 4.0 %',
  ]);
  expect(timePlan({ tier: 'proc' })).toBeNull();
});

test('advice that goes on from its finding is not shown without it', () => {
  expect(shape.adviceOf(POLLED)).toBe(
    'See where its CPU time goes: pinwise profile.',
  );
});

test('a thread names the place of its lock', () => {
  expect(shape.threadTable(POLLED).rows[0]?.at(-1)?.text).toBe(
    'a lock at book; a timer (sleep)',
  );
});
