// Ticks and labels of axes.

import { expect, test } from 'vitest';

import { decadeTicks, ratioLabel, ratioRange, ratioTicks } from './scales';

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

test('the range holds 1, everything drawn, and is no point', () => {
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
