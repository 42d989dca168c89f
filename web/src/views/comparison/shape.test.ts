// The data of a comparison's drawings.

import { expect, test } from 'vitest';

import { adviceGroups } from './advice';
import { isOtherThanMedians, ratioLines } from './ratios';
import { armRows, contrastRows, settingText } from './rows';
import { cumulativeSteps, runningMedian, runsInTime, spreadDots } from './runs';
import { armLines, readHead } from './shape';
import { ratioPlan } from './charts';
import { quantile } from '../../numbers';
import { isRows, panelsOf, COLOURS } from '../../plot';
import { describeEffect } from './disagreement';
import type { Comparison, ContrastRecord, RunRecord } from '../../records';

const run = (
  value: number | null,
  at_s: number,
  more: Partial<RunRecord> = {},
): RunRecord => ({
  at_s,
  block: at_s,
  wall_s: 2,
  metric: { value, cost: value },
  ...more,
});

function comparison(more: Partial<Comparison> = {}): Comparison {
  const effect = {
    value: -20,
    low: -30,
    high: -10,
    text: '−20.0 %',
    interval: '−30.0 to −10.0 %',
  };
  const contrast: ContrastRecord = { arm: 'b', effect, verdict: 'faster' };
  return {
    schema: 'pinwise.comparison/1',
    baseline: 'a',
    best: 'b',
    metric: { name: 'wall', unit: 's', better: 'lower' },
    arms: [
      {
        name: 'a',
        runs: [run(10, 0), run(12, 2), run(11, 4)],
        estimate: { value: 11, low: null, high: null },
      },
      { name: 'b', runs: [run(8, 1), run(9, 3)], estimate: null },
      { name: 'c', runs: [], invalid: 'exit 1', standing: 'failed' },
      {
        name: 'd',
        runs: [run(20, 5, { phase: 'screening' }), run(null, 6)],
        eliminated: true,
      },
    ],
    contrasts: [contrast],
    verdict: { kind: 'best', sentence: 'b is best.' },
    stopped: 'precision',
    ...more,
  };
}

test('medians that say another change are noticed', () => {
  // The medians say −23 %, the blocks −20 %.
  const lines = armLines(
    comparison({
      contrasts: comparison().contrasts!.map((one) => ({
        ...one,
        baseline: 'a',
      })),
    }),
  );
  expect(isOtherThanMedians(lines)).toBe(true);
});

test('arms are in order of cost, those without runs last', () => {
  const lines = armLines(comparison());
  expect(
    lines.map((l) => [l.name, l.standing, l.dots.length, l.median]),
  ).toEqual([
    ['b', 'faster', 2, 8.5],
    ['a', 'baseline', 3, 11],
    ['d', 'eliminated', 1, 20],
    ['c', 'invalid', 0, null],
  ]);
});

test('an arm that never ended is slower, even as the baseline', () => {
  const late = { limit_s: 5, at_least: 25, change: '≥ 25×', sentence: '' };
  const arms = ['a', 'b'].map((name) => ({ name, timed_out: late }));
  const lines = armLines(comparison({ arms, contrasts: [] }));
  expect(lines.map((l) => l.standing)).toEqual(['slower', 'slower']);
});

test('if higher is better, the highest value is first', () => {
  const inverse = (value: number): RunRecord => ({
    metric: { value, cost: 1 / value },
  });
  const lines = armLines(
    comparison({
      arms: [
        { name: 'slow', runs: [inverse(1)] },
        { name: 'quick', runs: [inverse(5)] },
      ],
    }),
  );
  expect(lines.map((l) => l.name)).toEqual(['quick', 'slow']);
});

test("the record's headline comes first", () => {
  const figure = { change: '−20.0 %', interval: '−30.0 to −10.0 %' };
  expect(readHead(comparison({ verdict: { headline: figure } })).figure).toBe(
    figure,
  );
  expect(readHead(comparison()).figure).toBeNull();
});

test('for a rate, the arm with the highest value is first', () => {
  const arms = ['a', 'b', 'c'].map((name) => ({
    name,
    runs: [],
    standing: 'better',
  }));
  const contrasts = [25, 50].map((value, at) => ({
    arm: arms[at + 1]!.name,
    effect: { value },
  }));
  const rows = (isRate: boolean): string[] =>
    ratioLines(armLines(comparison({ arms, contrasts })), isRate).map(
      (r) => r.name,
    );
  expect([rows(true), rows(false)]).toEqual([
    ['c', 'b'],
    ['b', 'c'],
  ]);
});

test('a running experiment has no headline figure', () => {
  const shown = readHead(comparison({ stopped: null }));
  expect(shown.isEnded).toBe(false);
  expect(shown.figure).toBeNull();
});

test('an interval with one end missing is not drawn', () => {
  const effect = { value: -20, low: null, high: -10 };
  const [row] = ratioLines(
    armLines(comparison({ contrasts: [{ arm: 'b', effect }] })),
    false,
  );
  expect(row).toMatchObject({
    ratio: 0.8,
    low: null,
    high: null,
    standing: 'unknown',
  });
});

test('below a withheld verdict are the figures that disagree', () => {
  const effect = { value: -10, low: -12, high: -8, text: '−10 %' };
  const rows = (more: Partial<ContrastRecord>, isRate = false) =>
    ratioLines(
      armLines(
        comparison({
          contrasts: [{ arm: 'b', verdict: 'undecided', effect, ...more }],
        }),
      ),
      isRate,
    ).map(({ name, ratio, low }) => [name, Math.round(ratio * 100), low]);
  const own = ['b', 90, 0.88];
  const others = [
    { judge: 'mean', effect: { value: 9, low: -13, high: 32 } },
    { judge: 'p90', effect: { value: 120, low: null, high: null } },
  ];
  expect(rows({ depends_on_tail: true, others })).toEqual([
    own,
    ['b by the mean', 109, 0.87],
    ['b by the 90th percentile', 220, null],
  ]);
  const by_time = { first: 0.8, second: 1.25 };
  const split = { depends_on_time: true, by_time, others };
  expect(rows(split)).toEqual([
    own,
    ['b at first', 80, null],
    ['b at the end', 125, null],
  ]);
  expect(rows(split, true).slice(1)).toEqual([
    ['b at first', 125, null],
    ['b at the end', 80, null],
  ]);
  expect(rows({ others })).toEqual([own]);
  expect(rows({ ...split, verdict: 'faster' })).toEqual([own]);
});

test('overlapping dots spread across, others do not', () => {
  expect(spreadDots([0.1, 0.5, 0.9], 0.05, 2)).toEqual([0, 0, 0]);
  const crowd = spreadDots([0.5, 0.5, 0.5, 0.5, 0.5], 0.05, 2);
  expect(new Set(crowd).size).toBe(5);
  expect(Math.max(...crowd.map(Math.abs))).toBeLessThanOrEqual(1);
  expect(spreadDots([0.5, 0.5, 0.5, 0.5, 0.5], 0.05, 2)).toEqual(crowd);
});

test('runs are in time order, each relative to its arm', () => {
  const all = runsInTime(armLines(comparison()));
  expect(all.map((m) => m.at)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(all[0]!.ratio).toBeCloseTo(10 / 11);
  expect(all[1]!.ratio).toBeCloseTo(8 / 8.5);
});

test('a drift shows in the running median', () => {
  const runs = Array.from({ length: 200 }, (_, at) => run(1 + at / 200, at));
  const path = runningMedian(
    runsInTime(armLines(comparison({ arms: [{ name: 'a', runs }] }))),
  );
  expect(path.at(-1)![1] / path[0]![1]).toBeGreaterThan(1.8);
  expect(runningMedian([])).toEqual([]);
});

test('cumulative steps rise from 0 to 1, and quantiles lie between runs', () => {
  expect(cumulativeSteps([3, 1])).toEqual([
    [1, 0],
    [1, 0.5],
    [3, 1],
  ]);
  expect(cumulativeSteps([])).toEqual([]);
  expect(quantile([1, 2, 3, 4], 0.5)).toBe(2.5);
});

test('unavailable figures are left out, not 0', () => {
  expect(
    contrastRows(armLines(comparison({ contrasts: [{ arm: 'b' }] })))[0]!.slice(
      1,
    ),
  ).toEqual([
    null,
    'no verdict',
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    '–',
  ]);
  const rows = armRows(armLines(comparison()), 's');
  expect(rows[3]).toEqual([
    'c',
    0,
    null,
    null,
    null,
    null,
    null,
    null,
    null,
    'failed: exit 1',
  ]);
  const held = run(1, 0, { user_s: 2, sys_s: 1, throttled_s: 9 });
  const limited = {
    name: 'limit=0.5',
    setting: { limit: { cpus: 0.5, period_s: 0.1 } },
    runs: [held, held],
  };
  const free = { name: 'os-default', runs: [run(1, 0, { throttled_s: 0 })] };
  const both = armRows(armLines(comparison({ arms: [limited, free] })), 's');
  expect(both.map((row) => row[8])).toEqual(['75.0 %', null]);
  expect(armLines({ schema: 'pinwise.comparison/1' })).toEqual([]);
});

test('factors that a ratio depends on are named', () => {
  const contrast = {
    arm: 'b',
    depends_on_tail: true,
    depends_on_load: true,
    load_levels: {
      light: { change: '−3.0 %', foreign_cpus: 0.1 },
      medium: null,
      heavy: { ratio: 9.64, change: '+864 %', foreign_cpus: 1.5 },
    },
    others: [
      {
        judge: 'mean',
        effect: { text: '+10.0 %', interval: '+5.0 to +20.0 %' },
      },
    ],
  };
  const [row] = contrastRows(armLines(comparison({ contrasts: [contrast] })));
  expect(row?.at(-1)).toBe('load, tail');
  expect(row?.at(-2)).toBe('−3.0 % at 0.1, ×9.64 at 1.5');
  expect(row?.[7]).toBe('+10.0 % (+5.0 to +20.0 %)');
});

test('every arm is advised once, the one to use first', () => {
  const said = (record: Comparison): [string, string[]][] =>
    adviceGroups(record, armLines(record)).map(({ word, arms }) => [
      word,
      arms.map((line) => line.name),
    ]);
  expect(said(comparison())).toEqual([
    ['Use', ['b']],
    ['Baseline', ['a']],
    ['Failed', ['c']],
    ['Screened out', ['d']],
  ]);
  const quiet = comparison({
    verdict: { kind: 'best', not_recommended: 'quiet_only' },
  });
  expect(said(quiet)[0]).toEqual(['Ahead, but not recommended', ['b']]);
  const marked = (record: Comparison): string[] =>
    armLines(record).flatMap(({ name, isBest }) => (isBest ? [name] : []));
  expect(marked(comparison())).toEqual(['b']);
  expect(marked(quiet)).toEqual([]);
  const leave = comparison({
    best: null,
    verdict: { kind: 'leave_alone', sentence: '' },
  });
  expect(said(leave)).toEqual([
    ['Use', ['a']],
    ['Also better', ['b']],
    ['Failed', ['c']],
    ['Screened out', ['d']],
  ]);
  const small = { kind: 'leave_alone', not_recommended: 'small_gain' } as const;
  expect(said(comparison({ best: null, verdict: small }))[0]).toEqual([
    'Use',
    ['a'],
  ]);
  expect(said(comparison({ stopped: null }))).toEqual([]);
});

test('an arm that failed is not advised against, and its error is said once', () => {
  const record = comparison({
    best: null,
    verdict: { sentence: "No arm could be measured: 'x' failed" },
    arms: [{ name: 'a', standing: 'failed', invalid: "'x' failed" }],
  });
  const lines = armLines(record);
  expect(adviceGroups(record, lines).map(({ word }) => word)).toEqual([
    'Failed',
  ]);
  expect(armRows(lines, 's', record.verdict?.sentence)[0]?.at(-1)).toBe(
    'failed',
  );
  expect(armRows(lines, 's')[0]?.at(-1)).toBe("failed: 'x' failed");
});

test('what a companion costs an arm is no advice against the arm', () => {
  const effect = { text: '+90.0 %', value: 90, low: 80, high: 99 };
  const setting = { beside: [{ name: 'noise', command: ['yes'] }] };
  const record = comparison({
    best: null,
    arms: [
      { name: 'a', runs: [run(10, 0)] },
      { name: 'a beside noise', runs: [run(19, 1)], setting },
      { name: 'b beside noise', runs: [run(18, 2)], setting },
    ],
    contrasts: [
      { arm: 'a beside noise', baseline: 'a', effect, verdict: 'slower' },
      {
        arm: 'b beside noise',
        baseline: 'a beside noise',
        effect,
        verdict: 'undecided',
      },
    ],
    verdict: { kind: 'undecided' },
  });
  const lines = armLines(record);
  const words = adviceGroups(record, lines).map(({ word }) => word);
  expect(words).toEqual(['Baseline', 'Undecided']);
  const plan = ratioPlan(record, lines)!;
  expect(
    panelsOf(plan, 800).map(({ y, rules }) => [
      isRows(y) && y.names,
      rules?.[0]?.label,
    ]),
  ).toEqual([
    [['b beside noise'], 'a beside noise'],
    [['a beside noise'], 'a'],
  ]);
  // The colour of an arm that is better or worse would claim too much.
  expect(
    panelsOf(plan, 800).map(({ series }) => series[0]!.points[0]!.colour),
  ).toEqual([COLOURS.neutral, COLOURS.worse]);
  // The verdict names what the companion changes for each arm: the chart shows it, once.
  const companion_effects = ['a', 'b'].map((arm) => ({
    arm,
    companion: 'noise',
    effect,
    verdict: 'slower',
  }));
  const full = ratioPlan({ ...record, companion_effects }, lines)!;
  expect(
    panelsOf(full, 800).map(({ y, rules }) => [
      isRows(y) && y.names,
      rules?.[0]?.label,
    ]),
  ).toEqual([
    [['a beside noise', 'b beside noise'], 'the same arm alone'],
    [['b beside noise'], 'a beside noise'],
  ]);
  // The headline figure is that of the best arm: its chart is first.
  const best = { ...record, companion_effects, best: 'b beside noise' };
  const [first] = panelsOf(ratioPlan(best, armLines(best))!, 800);
  expect(first?.rules?.[0]?.label).toBe('a beside noise');
});

test('arms that were left out come last, however cheap', () => {
  const arms = [
    { name: 'out', runs: [run(1, 0)], eliminated: true },
    { name: 'a', runs: [run(10, 0)] },
  ];
  const lines = armLines(comparison({ arms }));
  expect(lines.map(({ name }) => name)).toEqual(['a', 'out']);
});

test('settings of an arm besides its placement are described', () => {
  expect(settingText(undefined)).toBe('');
  const limit = { cpus: 0.5, period_s: 0.02 };
  expect(settingText({ limit, is_exclusive: false })).toBe(
    'limit of 0.5 CPUs in 20 ms (Kubernetes: limits.cpu: 500m)',
  );
  const beside = [{ name: 'noise', command: ['stress-ng', '--cpu', '1'] }];
  expect(settingText({ is_exclusive: true, policy: 'batch', beside })).toBe(
    'cpuset of its own (Kubernetes: a Guaranteed pod, static policy), policy batch, beside noise: stress-ng --cpu 1',
  );
});

test('changes of threefold and more are factors', () => {
  const effect = { value: 1612, low: 1537, high: 1699, text: '+1612 %' };
  expect(describeEffect(effect)).toEqual({
    change: '×17.1',
    interval: '×16.4 to ×18',
  });
  const small = { value: 120, text: '+120 %', interval: '+110 to +130 %' };
  expect(describeEffect(small)).toEqual({
    change: '+120 %',
    interval: '+110 to +130 %',
  });
});
