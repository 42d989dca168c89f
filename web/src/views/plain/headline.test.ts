// Headlines of the kinds that are shown as their fields.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import type { AnyRecord } from '../../source';
import { composeHeadline, formatWays } from './headline';

/** Fields that each recording changes. */
const FIXED: Readonly<Record<string, object>> = {
  rules: {
    rules: [
      { cpus: '0', processes: [{ name: 'orders', process: 2442 }] },
      { processes: [] },
    ],
  },
  applied: {
    service: { pid: 21742, name: 'orders' },
    observations: 50,
    observed_share: 0.98,
    elapsed_s: 2,
  },
  'rule-change': { process: 22488 },
};

const readRecord = (kind: string): AnyRecord => ({
  ...(JSON.parse(
    readFileSync(
      new URL(`../../../../tests/data/records/${kind}.json`, import.meta.url),
      'utf8',
    ),
  ) as AnyRecord),
  ...FIXED[kind],
});

const CASES: Readonly<Record<string, readonly [string, string?]>> = {
  applied: [
    'orders (PID 21742) was placed on CPU 0 for 2.00 s, there in 98.0 % of 50 looks; then 4 threads were restored.',
    'pinwise top --pid 21742',
  ],
  'fleet-status': [
    'Fleet nightly: 2 of 2 nodes done.',
    'pinwise fleet report nightly',
  ],
  prediction: [
    '8 cores in 2 LLCs is predicted best: −12.2 % cost against os-default (−19.2 % to −4.1 %); predictions off by 1.3 % (median of 4).',
    'pinwise compare --machine sim:desktop.toml --place os-default --place shape:llc=2,core=8,cpu=8 -- ./heat -s 500 plate.grid',
  ],
  replay: [
    'Latency alone divides 12 CPUs into 6 cores and 2 last-level caches.',
    'pinwise topology',
  ],
  'rule-change': [
    'Rule orders moved orders (PID 22488) from CPUs 0-1 to CPU 0.',
    'pinwise top --pid 22488',
  ],
  rules: [
    'The rules would move orders (PID 2442) to CPU 0.',
    'pinwise apply rules run rules.toml',
  ],
  'topology-diff': [
    'A has 2 CPUs, 2 cores and 1 last-level cache; B has 16 CPUs, 8 cores and 2 last-level caches.',
    'pinwise topology --measure',
  ],
};

test.each(Object.entries(CASES))(
  'a record of kind %s begins with its answer',
  (kind, [sentence, command]) => {
    const [shown, next] = composeHeadline(kind, readRecord(kind));
    expect(shown).toBe(sentence);
    expect(next?.[1]).toBe(command);
  },
);

test.each(Object.keys(CASES))(
  'a record of kind %s without its fields has a headline',
  (kind) => {
    const schema = `pinwise.${kind}/1`;
    expect(composeHeadline(kind, { schema })[0]).not.toMatch(
      /undefined|null|NaN/,
    );
  },
);

test('a placement that was watched in part, or not at all, says so', () => {
  const applied = { ...readRecord('applied'), asked_cpus: '0-1' };
  expect(composeHeadline('applied', applied)[0]).toBe(
    'orders (PID 21742) was placed on CPU 0 (requested: 0-1) for 2.00 s, there in 98.0 % of 50 looks; then 4 threads were restored.',
  );
  const unseen = {
    ...readRecord('applied'),
    observations: 0,
    observed_share: null,
    threads: 1,
    returned: 0,
  };
  const whole = { ...readRecord('applied'), observed_share: 1 };
  expect(composeHeadline('applied', whole)[0]).toBe(
    'orders (PID 21742) ran on CPU 0 alone for 2.00 s; then 4 threads were restored.',
  );
  expect(composeHeadline('applied', unseen)[0]).toBe(
    'orders (PID 21742) was placed on CPU 0 for 2.00 s, and did not run; 0 of 1 thread was restored.',
  );
});

test('an unfinished fleet goes on with what is missing', () => {
  const status = { ...readRecord('fleet-status'), done: 1, failed: 1 };
  expect(composeHeadline('fleet-status', status)).toEqual([
    'Fleet nightly: 1 of 2 nodes done, 1 failed.',
    ['Submit what is missing', 'pinwise fleet resume nightly'],
  ]);
});

test('a number of dozens of digits is a power of ten', () => {
  expect(formatWays('18145')).toBe('18,145');
  expect(formatWays('6856396806172085123456789012')).toBe('6.9·10^27');
});

test('a predicted gain that may be none is no best placement', () => {
  const placements = [
    { label: '4 cores', ratio: 0.996, low: 0.98, high: 1.012 },
  ];
  expect(
    composeHeadline('prediction', {
      ...readRecord('prediction'),
      placements,
    } as never)[0],
  ).toMatch(/^Nothing is sure to beat os-default; 4 cores leads: −0.4 % cost/);
});

test('a prediction for this machine goes on with a comparison', () => {
  const local = { ...readRecord('prediction'), machine: 'local' };
  expect(composeHeadline('prediction', local)[1]?.[1]).toBe(
    'pinwise compare --place os-default --place shape:llc=2,core=8,cpu=8 -- ./heat -s 500 plate.grid',
  );
});

test('matrices without levels and refused rules say why', () => {
  const flat = { schema: 'pinwise.replay/1', cpus: 4, flat: true };
  expect(composeHeadline('replay', flat)[0]).toBe(
    'Latency shows no groups among 4 CPUs: all pairs are alike.',
  );
  const refused = {
    ...readRecord('rule-change'),
    change: 'refused',
    to: null,
    from: null,
    why: 'it is a kernel thread',
  };
  expect(composeHeadline('rule-change', refused)[0]).toBe(
    'Rule orders did not move orders (PID 22488): it is a kernel thread.',
  );
});

test('a kind with a view of its own has no such headline', () => {
  expect(composeHeadline('trace', { schema: 'pinwise.trace/1' })).toEqual([]);
});
