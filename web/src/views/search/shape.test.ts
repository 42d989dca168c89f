// The data of a search's drawings.

import { expect, test } from 'vitest';

import { compareCells, narrowed } from '../../sortable';
import type { SearchRecord } from './record';
import { candidateRows, checks, checksSummary, effects, figure, progressSteps, runCommands, searchAgain } from './shape';

const SEARCH: SearchRecord = {
  schema: 'pinwise.search/1',
  metric: { name: 'wall', unit: 's', better: 'lower' },
  command: ['./prog', '-t', '{threads}'],
  plan: { sets_threads: true },
  arms: [
    { name: 'os-default', placement: 'os-default', threads: null, cpus: '0-7' },
    { name: 'x @ 4 threads', placement: 'shape:pkg=1', threads: 4, cpus: '0-3', cores: 4 },
    { name: 'y', placement: 'shape:pkg=2', cpus: '0,4' },
  ],
  predictions: [
    { arm: 'os-default', predicted: 2, low: 1.9, high: 2.1, runs: 3, measured: { value: 2 }, foretold: null },
    {
      arm: 'x @ 4 threads',
      predicted: 1,
      low: 0.9,
      high: 1.1,
      runs: 1,
      measured: { value: 1 },
      foretold: { predicted: 1.2, low: 1, high: 1.4, measured: 1.5 },
    },
    { arm: 'y', predicted: 3, low: 2, high: 4, runs: 0, measured: null, foretold: null, truth: 3.5 },
  ],
  best: 'x @ 4 threads',
  confirmation: { arm: 'x @ 4 threads', pairs: 7, ratio: 0.5, low: null, high: null },
};

test('a prediction is held against what it had not seen', () => {
  const found = checks(SEARCH);
  expect(found.foretold).toEqual([{ arm: 'x @ 4 threads', predicted: 1.2, low: 1, high: 1.4, came: 1.5 }]);
  expect(found.unseen).toEqual([{ arm: 'y', predicted: 3, low: 2, high: 4, came: 3.5 }]);
  expect(checksSummary(found)).toBe(
    '0 of 1 first runs lie in their 90 % intervals. 1 of 1 true costs of arms that never ran lie in their 90 % intervals.',
  );
});

test('what a search calls a list of CPUs stays one word', () => {
  const arms = [{ name: 'y', placement: 'shape:pkg=2', cpus: '0 && touch x' }];
  expect(runCommands({ ...SEARCH, arms }, 'y', 'The best')[1]?.[1]).toContain(`taskset -c '0 && touch x' ./prog`);
});

test('the best is run with its threads', () => {
  expect(runCommands(SEARCH, SEARCH.best, 'The best')).toEqual([
    ['The best with pinwise, 4 threads', 'pinwise run --place shape:pkg=1 -- ./prog -t 4'],
    ['The best with taskset, 4 threads', 'taskset -c 0-3 ./prog -t 4'],
  ]);
  expect(runCommands(SEARCH, 'os-default', 'x')).toEqual([]);
  expect(runCommands(SEARCH, null, 'x')).toEqual([]);
});

test('candidates come with the least expected cost first, unknown figures as a dash', () => {
  const rows = candidateRows(SEARCH);
  expect(rows.map((row) => row[0]!.text)).toEqual(['★ x @ 4 threads', 'os-default', 'y']);
  expect(rows[2]![7]).toEqual({ text: '–', sort: null });
  expect([...rows].sort((a, b) => compareCells(a[7], b[7], true)).map((row) => row[0]!.sort)).toEqual([
    'os-default',
    'x @ 4 threads',
    'y',
  ]);
  expect(narrowed(rows, 'X 4').length).toBe(1);
});

test('the search comes back from its record, unless it had surroundings', () => {
  const record: SearchRecord = {
    ...SEARCH,
    host: { machine_spec: 'sim:x.toml' },
    seed: 3,
    workload: { input: null, environment: [] },
    plan: {
      threads: [2, 4],
      within: 0.02,
      least_within: 0.05,
      max_runs: 30,
      budget_s: null,
      confirmation_pairs: 30,
      output: 'discard',
    },
  };
  expect(searchAgain(record)).toBe(
    `pinwise --machine sim:x.toml search --threads 2,4 --within 2% --budget 30 --confirm 30 --seed 3 -- ./prog -t '{threads}'`,
  );
  expect(searchAgain({ ...record, workload: { recipe: 'redis' } })).toBeNull();
  expect(searchAgain({ schema: '' })).toBeNull();
});

test('without an interval the figure says so', () => {
  expect(figure(SEARCH)).toMatchObject({ text: '−50.0 %', interval: 'no interval: too few pairs', confidence: '' });
  expect(figure({ schema: 'pinwise.search/1' })).toBeNull();
});

test('what is missing is left out', () => {
  expect(
    progressSteps({ schema: '', progress: [{ runs: 3 }, { runs: 4, predicted: 1, leader: 'a' }] }).map((s) => s.runs),
  ).toEqual([4]);
  expect(
    effects({
      schema: '',
      model: { features: [{ effect: null }, { name: 'a', effect: 0.1, sd: 0.06 }, { name: 'b', effect: -0.2, sd: 0.01 }] },
    }).map((e) => [e.name, e.isSure]),
  ).toEqual([
    ['b', true],
    ['a', false],
  ]);
  expect(candidateRows({ schema: '' })).toEqual([]);
});
