// Labels that are cut to their room.

import { expect, test } from 'vitest';

import { fitNames, fitTitle, shiftInside } from './labels';

const measure = (text: string): number => text.length;

test('names that fit are whole', () => {
  expect(fitNames(['os-default', 'compact'], 10, measure)).toEqual([
    'os-default',
    'compact',
  ]);
});

test('names with the same beginning are cut where they differ', () => {
  expect(
    fitNames(
      [
        'shape:llc=2,core=4,cpu=8',
        'shape:llc=2,core=6,cpu=8',
        'shape:llc=1,core=4,cpu=8',
        'os-default',
      ],
      14,
      measure,
    ),
  ).toEqual(['…core=4,cpu=8', '…core=6,cpu=8', 'shape:llc=1,c…', 'os-default']);
});

test('names that are too wide are wrapped if rows have room', () => {
  const names = ['64 cores in 12 LLCs', '60 cores in 12 LLCs', '★ os-default'];
  expect(fitNames(names, 11, measure, true)).toEqual([
    '64 cores in\n12 LLCs',
    '60 cores in\n12 LLCs',
    '★ os-defau…',
  ]);
});

test('other names are cut at their end', () => {
  expect(
    fitNames(['web on cpu:0, batch on cpu:1', 'a', 'a'], 10, measure),
  ).toEqual(['web on cp…', 'a', 'a']);
});

test('an axis title is cut to its directions before it is cut at its end', () => {
  const title = '← better      the joint cost      worse →';
  expect(fitTitle(title, 50, measure)).toBe(title);
  expect(fitTitle(title, 22, measure)).toBe('← better      worse →');
  expect(fitTitle('← lower in B      higher in B →', 10, measure)).toBe(
    '← lower i…',
  );
});

test('a label at an edge moves inside', () => {
  const wide = (text: string): number => 10 * text.length;
  expect(shiftInside('baseline', 300, 400, wide)).toBe(0);
  expect(shiftInside('baseline', 380, 400, wide)).toBe(-20);
  expect(shiftInside('baseline', 10, 400, wide)).toBe(30);
});
