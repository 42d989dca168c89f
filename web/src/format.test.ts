// Numbers are written as in pinwise's text.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import {
  bytes,
  ratio,
  change,
  count,
  digits,
  fixed,
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
