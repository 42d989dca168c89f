// The data of a difference's drawing.

import { expect, test } from 'vitest';

import type { DiffRecord } from '../../records';
import {
  changeText,
  figureRows,
  ratioRows,
  ratioSummary,
  toSentence,
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
    { name: 'x', ratio: 0.5, low: 0.4, high: 0.6, verdict: 'lower' },
    { name: 'y', ratio: 1.1, low: null, high: null, verdict: 'cannot_tell' },
  ]);
  expect(ratioSummary(ratioRows(DIFF))).toBe(
    'Of 2 figures: 1 lower, 1 inconclusive.',
  );
  expect(ratioSummary(ratioRows(DIFF).slice(1))).toBe(
    'Of 1 figure: 1 inconclusive.',
  );
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

test('the sentence names what changed most', () => {
  expect(toSentence(DIFF)).toBe(
    '1 of 1 figure changed; x −50.0 % (−60.0 % to −40.0 %).',
  );
  const figures = [{ name: 'z', ratio: 1.036, low: 0.959, high: 1.12 }];
  expect(toSentence({ figures })).toBe(
    'Nothing shown to have changed; z +3.6 % (−4.1 % to +12.0 %).',
  );
});
