// The data of a difference's drawing.

import { expect, test } from 'vitest';

import type { DiffRecord } from '../../records';
import {
  armRows,
  armTable,
  changeText,
  figureRows,
  ratioRows,
  ratioSummary,
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
      words: ['500 ms → 250 ms   −50.0 %   lower', '−50.0 %'],
    },
    {
      name: 'y',
      ratio: 1.1,
      low: null,
      high: null,
      verdict: 'cannot_tell',
      words: ['1.00 s → 1.10 s   +10.0 %   inconclusive', '+10.0 %'],
    },
  ]);
  expect(ratioSummary(ratioRows(DIFF))).toBe(
    'Of 2 figures: 1 lower, 1 inconclusive.',
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

test('arms have their own figures in both records, the baseline first', () => {
  const arm = (value: number, text: string) => ({
    estimate: { value, low: value - 0.1, high: value + 0.1 },
    effect: text ? { text, interval: '−20 to −10 %' } : null,
  });
  const diff: DiffRecord = {
    metric: { unit: 's', label: 'wall-clock time', better: 'lower' },
    figures: [
      {
        ...{ name: 'best', over: 'os', verdict: 'higher' },
        ...{ ratio: 1.17, low: 1.1, high: 1.2, shift: 'advantage_lost' },
        ...{ arm_a: arm(0.8, '−13.0 %'), arm_b: arm(0.9, '+2.0 %') },
      },
      {
        ...{ name: 'new', over: 'os', verdict: 'cannot_tell' },
        arm_b: arm(1.2, '+30.0 %'),
      },
      { name: 'os', unit: 's', arm_a: arm(1, ''), arm_b: arm(0.88, '') },
    ],
  };
  const rows = armRows(diff);
  expect(rows.map(({ name, meaning }) => [name, meaning])).toEqual([
    ['os', 'baseline'],
    ['best', 'advantage lost'],
    ['new', 'only in B'],
  ]);
  expect(rows[1]!.isBetter).toBe(false);
  expect(rows[1]!.words).toEqual([
    '800 → 900 ms   −13.0 % → +2.0 %   advantage lost',
    '800 → 900 ms',
  ]);
  expect(armTable(diff, rows)[1]).toEqual([
    'best',
    '800 ms (700 ms to 900 ms)',
    '900 ms (800 ms to 1.00 s)',
    '−13.0 % (−20 to −10 %)',
    '+2.0 % (−20 to −10 %)',
    '+17.0 % (+10.0 % to +20.0 %)',
    'advantage lost',
  ]);
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
});

test('counts are whole', () => {
  const figures = [{ name: 'nodes', unit: '', a: 3, b: 2, ratio: 2 / 3 }];
  expect(ratioRows({ figures })[0]?.words?.[0]).toMatch(/^3 → 2 /);
});

test('an arm that only the baseline moved away from is unchanged', () => {
  const arm = { estimate: { value: 1 }, effect: { text: '+17.3 %' } };
  const figures = [
    {
      ...{ name: 'compact', over: 'os', verdict: 'higher' },
      ...{ shift: 'baseline_moved', arm_a: arm, arm_b: arm },
    },
  ];
  const [row] = armRows({ metric: { unit: 's' }, figures } as DiffRecord);
  expect(row?.isBetter).toBeNull();
  expect(row?.words[0]).toBe('1.00 → 1.00 s   unchanged; os moved');
});
