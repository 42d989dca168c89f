// What the page of a comparison shows in other words than its record.

import { expect, test } from 'vitest';

import { adviceGroups } from './advice';
import { findLetters, prepareComparison } from './label';
import { armLines } from './shape';
import type { Comparison } from '../../records';

const A = 'cut -f1 access.log | sort -u | diff - known.txt';
const B = 'cut -f1 access.log | LC_ALL=C sort -u | diff - known.txt';

const comparison = (exit: number): Comparison => ({
  schema: 'pinwise.comparison/1',
  again: 'pinwise --format json --quiet compare -- gzip',
  ...{ baseline: A, best: B, stopped: 'precision' },
  arms: [A, B].map((name) => ({
    name,
    runs: [{ exit, metric: { value: 1, cost: 1 } }],
  })),
  contrasts: [{ arm: B, baseline: A, verdict: 'faster' }],
  findings: [{ check: 'exit_statuses', advice: 'Read its output.' }],
  verdict: {
    kind: 'best',
    sentence: `${B} is best: faster than ${A} by 25 %.`,
    commands: [{ what: 'as it is', line: B }],
  },
});

const prepare = (record: Comparison): Comparison =>
  prepareComparison(record, findLetters(record));

test('long commands have letters, and words that differ are known', () => {
  const [a, b] = findLetters(comparison(0));
  const [start, end] = ['cut -f1 access.log |', 'sort -u | diff - known.txt'];
  expect(a!.parts).toEqual([start, '', end]);
  expect(b!.parts).toEqual([start, 'LC_ALL=C', end]);
  const shown = prepare(comparison(0));
  expect(shown.verdict?.sentence).toBe('B is best: faster than A by 25 %.');
  expect(shown.contrasts?.[0]).toMatchObject({ arm: 'B', baseline: 'A' });
  expect(shown.verdict?.commands?.[0]?.line).toBe(B);
  expect(findLetters({ arms: [{ name: 'os-default' }] })).toEqual([]);
});

test('an arm of which all runs failed is not recommended', () => {
  const shown = prepare(comparison(1));
  expect(shown.verdict).toMatchObject({
    sentence:
      'All runs failed (exit status 1); apart from that, B is best: faster than A by 25 %.',
    advice: 'Read its output.',
    commands: [],
  });
  const words = adviceGroups(shown, armLines(shown)).map(({ word }) => word);
  expect(words).toEqual(['Ahead, but not recommended', 'Baseline']);
  expect(prepare(comparison(0)).findings).toHaveLength(1);
});

test('commands to copy have no options of a fleet', () => {
  expect(prepare(comparison(0)).again).toBe('pinwise compare -- gzip');
});
