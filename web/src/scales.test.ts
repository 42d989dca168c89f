// Ticks and labels of axes.

import { expect, test } from 'vitest';

import { quantity } from './format';
import { endsOf, labelOf, ratioAxis, tickLabels, ticksThatFit } from './plot';

import {
  decadeTicks,
  evenTicks,
  ratioLabel,
  ratioRange,
  ratioTicks,
  wholeTicks,
} from './scales';

test('ratios near 1 are labelled in round per cent, as many as fit', () => {
  expect(ratioTicks(0.93, 1.12, 6).map(ratioLabel)).toEqual([
    '−5 %',
    '0 %',
    '+5 %',
    '+10 %',
  ]);
  expect(ratioTicks(0.995, 1.005, 12).map(ratioLabel)).toContain('+0.1 %');
});

test('far ratios are labelled as factors, and never more than fit', () => {
  expect(ratioTicks(0.4, 60, 12).map(ratioLabel)).toEqual([
    '−50 %',
    '0 %',
    '+100 %',
    '×5',
    '×10',
    '×20',
    '×50',
  ]);
  for (const [low, high] of [
    [0.1, 2],
    [0.9, 1.1],
    [0.0001, 1000],
    [0.5, 2.9],
  ] as const) {
    const ticks = ratioTicks(low, high, 5);
    expect(ticks.length).toBeGreaterThan(0);
    expect(ticks.length).toBeLessThanOrEqual(5);
    expect(
      ticks.every((t) => t > 0 && t >= low * 0.999 && t <= high * 1.001),
    ).toBe(true);
  }
});

test('the range of ratios contains 1 and all data, and is wider than a point', () => {
  const [low, high] = ratioRange([1], 0.01);
  expect(low).toBeLessThan(0.991);
  expect(high).toBeGreaterThan(1.01);
  expect(ratioRange([0.5, NaN, 0], 0.01)[0]).toBeLessThan(0.5);
});

test('decades are divided where there is room', () => {
  expect(decadeTicks(0.9, 60, 10)).toEqual([1, 2, 5, 10, 20, 50]);
  expect(decadeTicks(1e-9, 1e3, 6).length).toBeLessThanOrEqual(6);
  expect(decadeTicks(3, 4, 5)).toEqual([3.5]);
});

test('even ticks are round, within the ends, and about as many as requested', () => {
  expect(evenTicks(0, 0.7, 4)).toEqual([0, 0.2, 0.4, 0.6]);
  expect(evenTicks(-3, 12, 3)).toEqual([0, 5, 10]);
  expect(evenTicks(2, 2, 5)).toEqual([2]);
});

test('axes of whole numbers have no fractional ticks', () => {
  expect(wholeTicks(0, 2.08, 10)).toEqual([0, 1, 2]);
  expect(wholeTicks(0, 24, 5)).toEqual([0, 5, 10, 15, 20]);
});

test('labels of an axis have as many digits as their steps', () => {
  const axis = {
    title: '',
    label: (v: number, n?: number) => quantity(v, '', n),
  };
  const labels = (ticks: number[]): string[] =>
    ticks.map((tick) => labelOf(axis, tick, ticks));
  expect(labels([1000, 1000.5, 1001])).toEqual(['1000.0', '1000.5', '1001.0']);
  expect(labels([0, 0.5, 1])).toEqual(['0', '0.500', '1.00']);
});

test('records of the same second have a time axis of a minute', () => {
  const axis = { title: '', type: 'utc' } as const;
  expect(endsOf(axis, [1.7e12, 1.7e12])).toEqual([1.7e12 - 3e4, 1.7e12 + 3e4]);
});

test('a narrow axis labels its ends rather than one tick', () => {
  const measure = (text: string): number => 7 * text.length;
  const cost = { title: '', ticks: evenTicks, label: String };
  expect(ticksThatFit(cost, [155, 240], 105, measure)).toEqual([160, 240]);
  const ratios = ratioAxis('', [0.79, 1.36]);
  expect(ticksThatFit(ratios, [0.79, 1.36], 90, measure)).toEqual([0.8, 1.2]);
});

test('of equal labels beside each other only the last is shown', () => {
  const axis = { title: '', label: (at: number) => (at < 2 ? 'a' : 'b') };
  expect(tickLabels(axis, [0, 1, 2, 3])).toEqual(['', 'a', '', 'b']);
});
