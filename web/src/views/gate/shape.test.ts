// The data of a gate's drawings and tables.

import { expect, test } from 'vitest';

import type { GateBenchmark, GateRecord } from '../../records';
import {
  benchmarkRows,
  nameBuild,
  describeBuild,
  toGateLines,
  toHeadline,
  toPairDots,
  splitPassed,
  summariseOutcomes,
} from './shape';

const METRIC = {
  unit: 's',
  better: 'lower',
  better_word: 'faster',
  worse_word: 'slower',
};

const benchmark = (
  name: string,
  outcome: string,
  more: Partial<GateBenchmark> = {},
): GateBenchmark => ({ name, outcome, metric: METRIC, ...more });

const RECORD: GateRecord = {
  schema: 'pinwise.gate/1',
  plan: { alpha: 0.05 },
  stopped: 'precision',
  verdict: { decision: 'fail', sentence: 'One is slower.', advice: 'Look.' },
  benchmarks: [
    benchmark('quick', 'passed', { standing: 'passed (faster)', ratio: 0.9 }),
    benchmark('open', 'undecided', { q: 0.5, ratio: 1.01 }),
    benchmark('same', 'passed', { q: 0.9, ratio: 1.001 }),
    benchmark('gone', 'missing'),
    benchmark('wrong', 'failed'),
    benchmark('parse', 'slower', {
      min_effect: 0.02,
      base: 0.2,
      head: 0.21,
      ratio: 1.05,
      low: 1.03,
      high: 1.07,
      effect: { text: '+5.0 %', interval: '+3.0 to +7.0 %' },
      pairs: [{ at_s: 1, base: 0.2, head: 0.21, head_first: true }],
    }),
  ],
};

test('benchmarks that need attention are first, the rest in the order of the suite', () => {
  expect(toGateLines(RECORD).map(({ name, word }) => [name, word])).toEqual([
    ['parse', 'slower'],
    ['gone', 'missing'],
    ['wrong', 'failed'],
    ['open', 'undecided'],
    ['quick', 'passed (faster)'],
    ['same', 'passed'],
  ]);
  expect(summariseOutcomes(toGateLines(RECORD))).toBe(
    '6 benchmarks: 1 slower, 1 missing, 1 failed, 1 undecided, 1 passed (faster), 1 passed.',
  );
});

test('if CPU time decides, its change and its medians are shown', () => {
  const cpu = {
    ratio: 1.021,
    low: 1.01,
    high: 1.03,
    effect: { text: '+2.1 %', interval: '+1.0 to +3.0 %' },
    decides: true,
  };
  const [line] = toGateLines({
    ...RECORD,
    benchmarks: [
      benchmark('parse', 'slower', {
        ratio: 1.01,
        cpu,
        change: '+2.1 % CPU',
        base: 2,
        head: 1.9,
        pairs: [{ base: 2, head: 1.9, base_cpu_s: 0.4, head_cpu_s: 0.42 }],
      }),
    ],
  });
  const [row] = benchmarkRows([line!]);
  expect(row!.slice(4, 6).map((cell) => cell.text)).toEqual([
    '400 ms',
    '420 ms',
  ]);
  expect(line).toMatchObject({
    ratio: 1.021,
    low: 1.01,
    change: '+2.1 % CPU',
    interval: '+1.0 to +3.0 %',
  });
});

test('the verdict is a word, and an unknown decision is undecided', () => {
  expect(toHeadline(RECORD)).toEqual({
    word: 'FAIL',
    decision: 'fail',
    sentence: 'One is slower.',
    advice: 'Look.',
  });
  const later = { ...RECORD, verdict: { decision: 'perhaps' } };
  expect(toHeadline(later).word).toBe('UNDECIDED');
});

test('a running gate has no verdict', () => {
  const sentence = 'No verdict yet: the gate is running.';
  const verdict = { ...RECORD.verdict, sentence };
  expect(toHeadline({ ...RECORD, verdict, stopped: null })).toEqual({
    word: '',
    decision: '',
    sentence,
    advice: '',
  });
});

test('a commit is shortened, and left out if it is the name', () => {
  const commit = '0123456789abcdef0123456789abcdef01234567';
  expect(describeBuild({ name: 'main', commit })).toBe('main (0123456789ab)');
  expect(describeBuild({ name: commit, commit })).toBe('0123456789ab');
  expect(describeBuild({ name: 'build', commit: null })).toBe('build');
  expect(nameBuild({ name: 'main', commit }, 'base')).toBe('main');
  expect(nameBuild(null, 'base')).toBe('base');
});

test('rows of the table have units, and dashes for unknown figures', () => {
  const [first, second] = benchmarkRows(toGateLines(RECORD)).map((row) =>
    row.map(({ text }) => text),
  );
  expect(first).toEqual([
    'parse',
    '+5.0 %',
    'slower',
    '+3.0 to +7.0 %',
    '200 ms',
    '210 ms',
    '2.0 %',
    '1',
  ]);
  expect(second).toEqual(['gone', '–', 'missing', '–', '–', '–', '–', '0']);
});

test('a pair of rates is drawn as its cost: up is worse', () => {
  const rate = benchmark('rate', 'passed', {
    metric: { ...METRIC, better: 'higher' },
    pairs: [
      { at_s: 1, base: 100, head: 80, head_first: false },
      { at_s: 2, base: 0, head: 80 },
      { at_s: null, base: 1, head: 1 },
    ],
  });
  const [line] = toGateLines({ benchmarks: [rate] });
  expect(toPairDots(line!)).toEqual([
    { at: 1, ratio: 1.25, base: 100, head: 80, isHeadFirst: false },
  ]);
});

test('pairs are of CPU time where that decided', () => {
  const pair = { at_s: 1, base: 3, head: 3, base_cpu_s: 2, head_cpu_s: 2.2 };
  const slower = benchmark('parse', 'slower', {
    cpu: { decides: true },
    pairs: [pair],
  });
  const [line] = toGateLines({ benchmarks: [slower] });
  expect(toPairDots(line!)[0]).toMatchObject({
    base: 2,
    head: 2.2,
    ratio: 1.1,
  });
});

test('a passed benchmark is drawn up to the limit that passed it', () => {
  const passed = benchmark('parse', 'passed', {
    ratio: 0.998,
    low: 0.97,
    high: 1.03,
    high_alone: 1.008,
    min_effect: 0.01,
    interval: '≤ +0.8 %',
  });
  const [line] = toGateLines({ benchmarks: [passed] });
  expect(line).toMatchObject({ low: 0.998, high: 1.008, interval: '≤ +0.8 %' });
  expect(line!.high).toBeLessThan(line!.limit!);
});

test('passed benchmarks are folded beside others, better ones are not', () => {
  const [shown, folded] = splitPassed(toGateLines(RECORD));
  expect(shown.map(({ name, mark }) => [name, mark])).toEqual([
    ['parse', 'worse'],
    ['gone', 'open'],
    ['wrong', 'open'],
    ['open', 'open'],
    ['quick', 'better'],
  ]);
  expect(folded.map(({ name }) => name)).toEqual(['same']);
  const alone = toGateLines({ benchmarks: [benchmark('same', 'passed')] });
  expect(splitPassed(alone)).toEqual([alone, []]);
});

test('a record with missing fields has lines as well', () => {
  expect(toGateLines({})).toEqual([]);
  expect(toGateLines({ benchmarks: [{}] })).toMatchObject([
    { name: '', word: '', ratio: null, limit: null, change: '' },
  ]);
});
