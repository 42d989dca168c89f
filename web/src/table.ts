// Tables.

import type { Child } from './dom';
import { h, visible } from './dom';

/** A missing value is shown as a dash. */
export type TableCell = string | number | Node | null | undefined;

export interface Table {
  caption: string;
  columns: readonly { name: string; isNumber?: boolean }[];
  rows: readonly (readonly TableCell[])[];
}

/** Columns of numbers by their names. */
export const numberColumns = (
  ...names: readonly string[]
): { name: string; isNumber: true }[] =>
  names.map((name) => ({ name, isNumber: true }));

/** A figure and its interval in brackets, which moves below it if both are too wide. */
function foldable(text: string): Child[] {
  const at = text.indexOf(' (');
  return at < 0
    ? [text]
    : [text.slice(0, at + 1), h('wbr'), text.slice(at + 1)];
}

/** The table without the columns that are empty in every row. */
export function withoutEmpty(table: Table): Table {
  const isFilled = (at: number): boolean =>
    table.rows.length === 0 || table.rows.some((row) => (row[at] ?? '') !== '');
  const only = <T>(cells: readonly T[]): T[] =>
    cells.filter((_, at) => isFilled(at));
  return { ...table, columns: only(table.columns), rows: table.rows.map(only) };
}

/** A table that scrolls sideways if it is wider than the page. */
export function tableElement(table: Table): HTMLElement {
  const align = (at: number): string =>
    table.columns[at]?.isNumber ? 'number' : '';
  const cell = (value: TableCell, at: number): Child => {
    const content =
      typeof value === 'string' ? foldable(visible(value)) : [value ?? '–'];
    return at === 0
      ? h('th', { scope: 'row', class: align(at) }, ...content)
      : h('td', { class: align(at) }, ...content);
  };
  return h(
    'div.scroll',
    { role: 'region', tabIndex: 0, aria: { label: table.caption } },
    h(
      'table',
      h('caption', table.caption),
      h(
        'thead',
        h(
          'tr',
          ...table.columns.map((c, at) =>
            h('th', { scope: 'col', class: align(at) }, c.name),
          ),
        ),
      ),
      h('tbody', ...table.rows.map((row) => h('tr', ...row.map(cell)))),
    ),
  );
}
