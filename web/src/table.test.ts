import { expect, test } from 'vitest';

import { toHead, numberColumns, withoutEmpty } from './table';

test('columns that are empty in every row are left out', () => {
  const columns = numberColumns('a', 'b', 'c', 'd');
  const table = (rows: (string | number | null)[][]) =>
    withoutEmpty({ caption: '', columns, rows });
  const { columns: left, rows } = table([
    ['x', null, 0, ''],
    ['y', '', null, ''],
  ]);
  expect(left.map((column) => toHead(column).name)).toEqual(['a', 'c']);
  expect(rows).toEqual([
    ['x', 0],
    ['y', null],
  ]);
  expect(table([]).columns).toEqual(columns);
});
