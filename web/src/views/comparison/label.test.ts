// What the page of a comparison shows in other words than its record.

import { expect, test } from 'vitest';

import { adviceGroups } from './advice';
import {
  findLetters,
  isOpen,
  listOpenSentences,
  prepareComparison,
  splitHead,
} from './label';
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

test('an arm of which all runs failed is ahead, and not recommended', () => {
  const record = comparison(1);
  record.verdict!.not_recommended = 'failed';
  const shown = prepare(record);
  const words = adviceGroups(shown, armLines(shown)).map(({ word }) => word);
  expect(words).toEqual(['Ahead, but not recommended', 'Baseline']);
});

test('commands to copy have no options of a fleet', () => {
  expect(prepare(comparison(0)).again).toBe('pinwise compare -- gzip');
});

test('the error output that a verdict quotes is apart from its answer', () => {
  const answer = "No verdict: 'b' failed; its standard error ends with:";
  const sentence = `${answer}\nb: no file\nb: giving up`;
  expect(splitHead({ verdict: { kind: 'undecided', sentence } })).toEqual([
    answer,
    '',
    'b: no file\nb: giving up',
  ]);
});

test('what is undecided belongs to the answer', () => {
  const sentence = 'c is slower by 10.5–17.1 %. Undecided: b may be faster.';
  expect(splitHead({ verdict: { kind: 'undecided', sentence } })[0]).toBe(
    sentence,
  );
  expect(
    splitHead({ verdict: { kind: 'best', sentence } }).slice(0, 2),
  ).toEqual(['c is slower by 10.5–17.1 %.', 'Undecided: b may be faster.']);
});

test('an undecided arm has no large figure, but the time that an answer takes', () => {
  const sentence = 'b is undecided; ±1.0 % takes about 21 s more.';
  const record: Comparison = {
    verdict: { headline: { change: '+2.8 %' } },
    contrasts: [
      {
        ...{ effect: { text: '+2.8 %' }, sentence, more_time_s: 21 },
        verdict: 'undecided',
      },
    ],
  };
  expect(isOpen(record)).toBe(true);
  expect(listOpenSentences(record)).toEqual([sentence]);
});
