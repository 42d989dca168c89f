// Tables.

import { type Child, h } from './dom';

/** A missing value is shown as a dash. */
export type TableCell = string | number | Node | null | undefined;

/** A column's name; figures are aligned to the right. */
export type Column = string | { name: string; isNumber?: boolean };

/** The head of a column. */
export const toHead = (
  column: Column,
): { name: string; class: 'number' | '' } =>
  typeof column === 'string'
    ? { name: column, class: '' }
    : { name: column.name, class: column.isNumber ? 'number' : '' };

export interface Table {
  caption: string;
  columns: readonly Column[];
  rows: readonly (readonly TableCell[])[];
}

/** Columns of numbers by their names. */
export const numberColumns = (
  ...names: readonly string[]
): { name: string; isNumber: true }[] =>
  names.map((name) => ({ name, isNumber: true }));

/** Allows a line break between a figure and its interval in brackets. */
function breakBeforeInterval(text: string): Child[] {
  const at = text.indexOf(' (');
  return at < 0
    ? [text]
    : [text.slice(0, at + 1), h('wbr'), text.slice(at + 1)];
}

/** Does a cell have content? */
export const isFilled = (cell: TableCell): boolean =>
  cell !== null && cell !== undefined && cell !== '' && cell !== '–';

/** The table without the columns that are empty in every row. */
export function withoutEmpty(table: Table): Table {
  const isShown = (at: number): boolean =>
    table.rows.length === 0 || table.rows.some((row) => isFilled(row[at]));
  const only = <T>(cells: readonly T[]): T[] =>
    cells.filter((_, at) => isShown(at));
  return { ...table, columns: only(table.columns), rows: table.rows.map(only) };
}

/** A table with a column for each row. */
export const transpose = ({ caption, columns, rows }: Table): Table => ({
  caption,
  columns: ['Figure', ...rows.map(([name]) => String(name))],
  rows: columns
    .slice(1)
    .map((column, at) => [
      toHead(column).name,
      ...rows.map((row) => row[at + 1]),
    ]),
});

/** A table without empty columns. On a phone each row is a block of names and values, and nothing
 * scrolls sideways. */
export function tableElement(all: Table): HTMLElement {
  const table = withoutEmpty(all);
  const heads = table.columns.map(toHead);
  const cell = (value: TableCell, at: number): Child => {
    const content =
      typeof value === 'string' ? breakBeforeInterval(value) : [value ?? '–'];
    const name = heads[at]?.class ?? '';
    return at === 0
      ? h('th', { scope: 'row', class: name }, ...content)
      : h(
          'td',
          { class: name, data: cardLabel(heads[at]?.name, value) },
          ...content,
        );
  };
  const box = scrollBox(
    table.caption,
    heads.map((head) =>
      h('th', { scope: 'col', class: head.class }, head.name),
    ),
    h('tbody', ...table.rows.map((row) => h('tr', ...row.map(cell)))),
  );
  return asCards(box);
}

/** The label of a cell where rows are cards; empty cells have none, and are left out there. */
export const cardLabel = (
  label: string | undefined,
  value: TableCell,
): Record<string, string> => (label && isFilled(value) ? { label } : {});

/** Shows the rows of a table as cards on a narrow screen: nothing is beside it. */
export function asCards(element: HTMLElement): HTMLElement {
  element.classList.add('cards');
  // What is drawn as blocks loses its roles.
  const roles = {
    table: 'table',
    'thead, tbody': 'rowgroup',
    tr: 'row',
    td: 'cell',
    "th[scope='row']": 'rowheader',
  };
  for (const [selector, role] of Object.entries(roles))
    element
      .querySelectorAll(selector)
      .forEach((one) => one.setAttribute('role', role));
  return element;
}

/** A table with a caption in a box that scrolls sideways. */
export const scrollBox = (
  caption: string,
  heads: readonly HTMLElement[],
  ...bodies: HTMLElement[]
): HTMLElement =>
  h(
    'div.scroll',
    { role: 'region', tabIndex: 0, aria: { label: caption } },
    h('table', h('caption', caption), h('thead', h('tr', ...heads)), ...bodies),
  );
