// Members cut out of a JSON text.

import { expect, test } from 'vitest';

import { sliceValue } from './json-slice';

test('a member keeps its exact text', () => {
  const json =
    ' {"a" : [ {"x": "]}\\"", "seed": 18446744073709551615}, [1 , 2] ],\n "b\\u0031": null } ';
  const cases: [(string | number)[], string | null][] = [
    [['a', 0, 'seed'], '18446744073709551615'],
    [['a', 0, 'x'], '"]}\\""'],
    [['a', 1], '[1 , 2]'],
    [['a', 1, 1], '2'],
    [['b1'], 'null'],
    [['a', 2], null],
    [['c'], null],
    [['b1', 'x'], null],
    [['a', 'x'], null],
  ];
  for (const [path, text] of cases) expect(sliceValue(json, path)).toBe(text);
  expect(sliceValue('[]', [0])).toBe(null);
  expect(sliceValue('5', [])).toBe('5');
});
