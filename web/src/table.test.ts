import { expect, test } from 'vitest';

import { toHead, numberColumns, transpose, withoutEmpty } from './table';

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

test('a transposed table has a column for each row', () => {
  const { columns, rows } = transpose({
    caption: '',
    columns: ['Arm', ...numberColumns('Mean', 'Spread')],
    rows: [
      ['a', 1, 2],
      ['b', 3, null],
    ],
  });
  expect(columns).toEqual(['Figure', 'a', 'b']);
  expect(rows).toEqual([
    ['Mean', 1, 3],
    ['Spread', 2, null],
  ]);
});
