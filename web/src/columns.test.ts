// Data that the program writes by columns are read back with all digits.

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import { fromColumns } from './columns';

const cases = JSON.parse(
  readFileSync(
    new URL('../../tests/data/columns.json', import.meta.url),
    'utf8',
  ),
) as [json: string, columns: string][];

test.each(cases)('%s', (json, columns) => {
  expect(fromColumns(columns)).toBe(json);
});
