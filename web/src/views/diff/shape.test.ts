// The data of a difference's drawing.

import { expect, test } from 'vitest';

import type { DiffRecord } from '../../records';
import {
  changeText,
  figureRows,
  ratioRows,
  ratioSummary,
  toSentences,
} from './shape';

const DIFF: DiffRecord = {
  schema: 'pinwise.diff/1',
  figures: [
    {
      name: 'x',
      unit: 's',
      a: 0.5,
      a_low: 0.4,
      a_high: 0.6,
      b: 0.25,
      b_low: null,
      b_high: null,
      ratio: 0.5,
      low: 0.4,
      high: 0.6,
      verdict: 'lower',
    },
    {
      name: 'y',
      unit: 's',
      a: 1,
      b: 1.1,
      ratio: 1.1,
      low: null,
      high: 2,
      verdict: 'cannot_tell',
    },
    {
      name: 'gone',
      unit: 's',
      a: 1,
      b: null,
      ratio: null,
      verdict: 'cannot_tell',
    },
    { name: 'zero', unit: '', a: 1, b: 0, ratio: 0, verdict: 'lower' },
  ],
};

test('only positive ratios and complete intervals are drawn', () => {
  expect(ratioRows(DIFF)).toEqual([
    {
      name: 'x',
      ratio: 0.5,
      low: 0.4,
      high: 0.6,
      verdict: 'lower',
      sides: '500 ms → 250 ms',
      words: ['500 ms → 250 ms   −50.0 %   lower', '−50.0 %'],
    },
    {
      name: 'y',
      ratio: 1.1,
      low: null,
      high: null,
      verdict: 'cannot_tell',
      sides: '1.00 s → 1.10 s',
      words: ['1.00 s → 1.10 s   +10.0 %   inconclusive', '+10.0 %'],
    },
  ]);
  expect(ratioSummary(ratioRows(DIFF))).toBe(
    'Of 2 figures: 1 lower, 1 inconclusive.',
  );
  expect(ratioSummary(ratioRows(DIFF).slice(1))).toBe(
    'Of 1 figure: 1 inconclusive.',
  );
});

test('figures that changed are first', () => {
  const figures = [
    { name: 'a', ratio: 1, verdict: 'same' },
    { name: 'b', ratio: 2, verdict: 'higher' },
  ] as const;
  const rows = ratioRows({ figures: [...figures] });
  expect(rows.map(({ name }) => name)).toEqual(['b', 'a']);
});

test('the table has every figure, unknown ones empty', () => {
  const rows = figureRows(DIFF);
  expect(rows[0]).toEqual([
    'x',
    '500 ms (400 ms to 600 ms)',
    '250 ms',
    '−50.0 % (−60.0 % to −40.0 %)',
    'lower',
  ]);
  expect(rows[2]).toEqual(['gone', '1.00 s', null, null, 'only in A']);
  expect(changeText({ ratio: null })).toBeNull();
  expect(figureRows({})).toEqual([]);
});

test('the sentence names what changed most, and what to do', () => {
  expect(toSentences(DIFF)).toEqual([
    'B differs from A in 1 of 1 figure: x −50.0 % (−60.0 % to −40.0 %).',
    'Measure both again to confirm it.',
  ]);
  const figures = [{ name: 'z', ratio: 1.036, low: 0.959, high: 1.12 }];
  expect(toSentences({ figures })).toEqual([
    'No difference between A and B is shown; the largest: z +3.6 % (−4.1 % to +12.0 %).',
    'Measure both again with more runs to narrow the intervals.',
  ]);
  const [same] = toSentences({
    figures: [{ ...figures[0]!, verdict: 'same' }],
  });
  expect(same).toMatch(/^B is the same as A;/);
});

test('a large change without an interval is a factor, and no verdict', () => {
  const figures = [{ name: 'time lost', ratio: 17.4 }];
  expect(toSentences({ figures })[0]).toBe(
    'No verdict: single records do not show what is chance. Largest difference: time lost ×17.4.',
  );
});

test('figures that share a baseline have its name once', () => {
  const figures = [
    {
      ...{ name: 'b', over: 'a', a: 1.2, b: 0.6 },
      verdict: 'lower',
      ...{ ratio: 0.5, low: 0.4, high: 0.6 },
    },
    { name: 'a', unit: 's', a: 1, b: 1.1, ratio: 1.1 },
  ] as const;
  expect(ratioRows({ figures: [...figures] }).map(({ name }) => name)).toEqual([
    'b',
    'a itself',
  ]);
  expect(toSentences({ figures: [...figures] })[0]).toBe(
    'b now beats a (+20.0 % → −40.0 %); a itself +10.0 % (1.00 s → 1.10 s), by program or machine.',
  );
  const two = [...figures, { name: 'c', over: 'd', ratio: 1 }];
  expect(ratioRows({ figures: two }).map(({ name }) => name)).toEqual([
    'b against a',
    'a',
    'c against d',
  ]);
});

test('an arm that lost its lead is said first, and the baseline has its interval', () => {
  const side = { schema: 'pinwise.comparison/1', title: 'xz' };
  const diff: DiffRecord = {
    ...{ a: side, b: side },
    figures: [
      {
        ...{ name: 'worst', over: 'os', a: 1.17, b: 1.34, verdict: 'higher' },
        ...{ ratio: 1.15, low: 1.1, high: 1.2 },
      },
      {
        ...{ name: 'best', over: 'os', a: 0.87, b: 1.02, verdict: 'higher' },
        ...{ ratio: 1.17, low: 1.1, high: 1.2 },
      },
      {
        ...{ name: 'os', unit: 's', ratio: 0.8, verdict: 'cannot_tell' },
        ...{ a: 1, a_low: 0.9, a_high: 1.1, b: 0.8, b_low: 0.7, b_high: 0.9 },
      },
    ],
  };
  expect(toSentences(diff)).toEqual([
    'best no longer beats os (−13.0 % → +2.0 %); worst against os +17.0 % → +34.0 %; os itself −20.0 % (1.00 s → 800 ms), by program or machine.',
    'Measure both again to confirm it.',
  ]);
  const rows = ratioRows(diff);
  expect(rows.map(({ verdict }) => verdict)).toEqual(['worse', 'worse', 'own']);
  expect(rows[2]!.low).toBeCloseTo(0.8 / 1.175);
  expect(rows[2]!.high).toBeCloseTo(0.8 * 1.175);
  expect(figureRows(diff)[1]![1]).toBe('−13.0 % (≈ 870 ms)');
});

test('changes of two gates are no ratio', () => {
  const gates: DiffRecord = {
    a: { schema: 'pinwise.gate/1' },
    figures: [{ name: 'parse', unit: '%', a: 0.6, b: -0.2, ratio: -0.33 }],
  };
  expect(ratioRows(gates)).toEqual([]);
  expect(figureRows(gates)).toEqual([
    ['parse', '+0.6 %', '−0.2 %', null, null],
  ]);
  expect(toSentences(gates)).toEqual([
    'Each gate compares its own two builds: parse +0.6 %, then −0.2 %.',
    'Follow a benchmark from commit to commit: `pinwise record history --trend parse`.',
  ]);
});

test('counts are whole', () => {
  const figures = [{ name: 'nodes', unit: '', a: 3, b: 2, ratio: 2 / 3 }];
  expect(ratioRows({ figures })[0]?.words?.[0]).toMatch(/^3 → 2 /);
});

test('equal figures are the same', () => {
  expect(toSentences({ figures: [{ name: 'x', ratio: 1.000001 }] })[0]).toBe(
    'B shows the same as A.',
  );
});
