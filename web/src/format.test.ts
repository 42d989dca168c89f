// Numbers are written as in pinwise's text.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import {
  bytes,
  ratio,
  change,
  count,
  digits,
  formatMoments,
  fixed,
  joinUnits,
  nanoseconds,
  percent,
  quantity,
  seconds,
  signedPercent,
} from './format';

type Case = [name: string, value: number, ...rest: string[]];

const CASES = JSON.parse(
  readFileSync(
    new URL('../../tests/data/formats.json', import.meta.url),
    'utf8',
  ),
) as Case[];

const FUNCTIONS: Record<string, (value: number, ...words: string[]) => string> =
  {
    three_digits: (value) => digits(value),
    fixed: (value, places) => fixed(value, Number(places)),
    seconds: (value) => seconds(value),
    nanoseconds,
    bytes,
    ratio,
    quantity: (value, unit) => quantity(value, unit!),
    percent: (value) => percent(value),
    signed_percent: signedPercent,
    change,
    count: (value, one, many) => count(value, one!, many!),
  };

test('numbers are formatted as in text output', () => {
  for (const [name, value, ...rest] of CASES) {
    const text = rest.pop();
    expect(FUNCTIONS[name]!(value, ...rest), `${name} ${value}`).toBe(text);
  }
});

test('a line never breaks between a number and its unit', () => {
  expect(
    joinUnits(
      'faster by 7.1–14.5 % in 22 min; 82.6G /s, 120 ops/s at 40.1 GB/s, ≤ 4 h',
    ).split(' '),
  ).toEqual(
    [
      ['faster', 'by', '7.1–14.5_%', 'in', '22_min;', '82.6G_/s,'],
      ['120_ops/s', 'at', '40.1_GB/s,', '≤_4_h'],
    ]
      .flat()
      .map((word) => word.replaceAll('_', '\u00a0')),
  );
});

test('numbers before other words may end a line', () => {
  for (const text of ['CPU 0 so far', '2 sends', '5 Bytes', '3 hosts', '1 %x'])
    expect(joinUnits(text)).toBe(text);
});

test('moments in the same minute have seconds', () => {
  const moment = formatMoments([
    '2026-11-22T19:17:05Z',
    '2026-11-22T19:17:41Z',
    '2026-11-22T19:18:00Z',
    '2026-11-22T19:18:00Z',
  ]);
  expect(moment('2026-11-22T19:17:05Z')).toBe('2026-11-22 19:17:05');
  expect(moment('2026-11-22T19:18:00Z')).toBe('2026-11-22 19:18');
});
