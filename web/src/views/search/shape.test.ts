// The data of a search's drawings.

import { expect, test } from 'vitest';

import type { SearchRecord } from '../../records';
import { compareCells, filterRows } from '../../sortable';
import { progressPlan } from './charts';
import {
  candidateRows,
  describeAhead,
  resumeCommand,
  sortCandidates,
  checkedPredictions,
  summariseChecks,
  sortEffects,
  progressSteps,
} from './shape';
import { panelsOf } from '../../plot';

const SEARCH: SearchRecord = {
  schema: 'pinwise.search/1',
  metric: { name: 'wall', unit: 's', better: 'lower' },
  arms: [
    { name: 'os-default', placement: 'os-default', threads: null, cpus: '0-7' },
    {
      name: 'x @ 4 threads',
      placement: 'shape:pkg=1',
      threads: 4,
      cpus: '0-3',
      cores: 4,
    },
    { name: 'y', placement: 'shape:pkg=2', cpus: '0,4' },
  ],
  predictions: [
    {
      arm: 'os-default',
      predicted: 2,
      low: 1.9,
      high: 2.1,
      runs: 3,
      measured: { value: 2 },
      first_prediction: null,
    },
    {
      arm: 'x @ 4 threads',
      predicted: 1,
      low: 0.9,
      high: 1.1,
      runs: 1,
      measured: { value: 1 },
      first_prediction: { predicted: 1.2, low: 1, high: 1.4, measured: 1.5 },
    },
    {
      arm: 'y',
      predicted: 3,
      low: 2,
      high: 4,
      runs: 0,
      measured: null,
      first_prediction: null,
    },
  ],
  best: 'x @ 4 threads',
};

test('a prediction is compared with the first run after it', () => {
  const found = checkedPredictions(SEARCH);
  expect(found).toEqual([
    { arm: 'x @ 4 threads', predicted: 1.2, low: 1, high: 1.4, measured: 1.5 },
  ]);
  expect(summariseChecks(found)).toBe(
    '0 of 1 first runs lie in their 90 % intervals.',
  );
});

test('candidates are sorted by expected cost, unknown figures are dashes', () => {
  const rows = candidateRows(SEARCH);
  expect(rows.map((row) => row[0]!.text)).toEqual([
    '★ x @ 4 threads',
    'os-default',
    'y',
  ]);
  expect(rows[2]![7]).toEqual({ text: '–', sort: null });
  expect(
    [...rows]
      .sort((a, b) => compareCells(a[7], b[7], true))
      .map((row) => row[0]!.sort),
  ).toEqual(['os-default', 'x @ 4 threads', 'y']);
  expect(filterRows(rows, 'X 4').length).toBe(1);
});

test('the allowed loss is drawn as a limit of the expected loss', () => {
  const plan = progressPlan({
    zone: 0.02,
    plan: { within: 0.01, error: 0.05 },
    progress: [
      {
        runs: 4,
        predicted: 1,
        leader: 'a',
        expected_loss: 0.1,
        probability_of_better: 0.4,
      },
      {
        runs: 8,
        predicted: 1,
        leader: 'a',
        expected_loss: 0.015,
        probability_of_better: 0.215,
      },
    ],
  });
  const panel = panelsOf(plan!, 600)[1];
  const losses = panel?.series[0]?.points.map((p) => p.y);
  expect(losses).toEqual([0.1, 0.015]);
  expect(panel?.rules?.[0]?.y).toBe(0.02);
});

test('missing fields are left out', () => {
  expect(
    progressSteps({
      progress: [{ runs: 3 }, { runs: 4, predicted: 1, leader: 'a' }],
    }).map((s) => s.runs),
  ).toEqual([4]);
  expect(
    sortEffects({
      model: {
        features: [
          { change: null },
          { name: 'a', change: { value: 10, low: -1, high: 20 } },
          {
            name: 'b',
            change: { value: -20, low: -21, high: -19 },
            is_clear: true,
          },
        ],
      },
    }).map((e) => [e.name, e.isClear]),
  ).toEqual([
    ['b', true],
    ['a', false],
  ]);
  expect(candidateRows({})).toEqual([]);
});

test('only the recommended arm has a star', () => {
  const shown = (record: SearchRecord): string[] =>
    candidateRows(record).map((row) => row[0]!.text);
  const undecided = { ...SEARCH, verdict: { kind: 'undecided' } };
  const busy = {
    ...SEARCH,
    verdict: { kind: 'best', not_recommended: 'busy_machine' },
  };
  for (const record of [undecided, busy])
    expect(shown(record as SearchRecord)[0]).toBe('x @ 4 threads');
});

test('the best is drawn first, and what is expected ahead of it is explained', () => {
  const best = { ...SEARCH, best: 'os-default', verdict: { kind: 'best' } };
  const all = sortCandidates(best as SearchRecord);
  expect(all.map(({ name }) => name)).toEqual([
    '★ os-default',
    'x @ 4 threads',
    'y',
  ]);
  expect(describeAhead(all)).toBe(
    ' Others are expected to be better by 50.0 % at most.',
  );
});

test('an undecided search goes on as the terminal says', () => {
  const open: SearchRecord = {
    ...SEARCH,
    id: '20261130-091449-56f143ff',
    host: { machine_spec: 'sim:a b' },
    verdict: { kind: 'undecided' },
    stopped: 'budget',
  };
  expect(resumeCommand(open).map(([, command]) => command)).toEqual([
    "pinwise search --machine 'sim:a b' --resume 20261130-091449-56f143ff --budget TIME",
  ]);
  expect(resumeCommand({ ...open, verdict: { kind: 'best' } })).toEqual([]);
});
