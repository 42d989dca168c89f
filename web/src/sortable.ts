// A table that is sorted by any column and narrowed by words.

import './sortable.css';

import type { Child } from './dom';
import { h, visible } from './dom';

export interface Cell {
  text: string;
  /** What it is sorted by; the text where absent, and last where `null`. */
  sort?: number | string | null;
}

export interface SortableTable {
  caption: string;
  columns: readonly { name: string; isNumber?: boolean }[];
  rows: readonly (readonly Cell[])[];
}

/** Rows drawn at most; the filter finds the others. */
const MOST_DRAWN = 300;

/** Order of two cells; unknown ones come last either way. */
export function compareCells(a: Cell | undefined, b: Cell | undefined, isDescending: boolean): number {
  const [x, y] = [a, b].map((cell) => (cell?.sort === undefined ? (cell?.text ?? null) : cell.sort));
  if (x === null || x === undefined || y === null || y === undefined)
    return (x === null || x === undefined ? 1 : 0) - (y === null || y === undefined ? 1 : 0);
  const order =
    typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y), 'en', { numeric: true });
  return isDescending ? -order : order;
}

/** Rows in which every word occurs. */
export function narrowed<T extends readonly Cell[]>(rows: readonly T[], text: string): T[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const told = row
      .map((cell) => cell.text)
      .join(' ')
      .toLowerCase();
    return words.every((word) => told.includes(word));
  });
}

/** The table as an element; `show` gives it other rows and keeps order and filter. */
export function sortableTable(first: SortableTable): { element: HTMLElement; show(table: SortableTable): void } {
  let table = first;
  let column = -1;
  let isDescending = false;
  const filter = h('input', { type: 'search', placeholder: 'Words to narrow by', aria: { label: `Narrow: ${first.caption}` } });
  const told = h('span', { class: 'muted', role: 'status' });
  const body = h('tbody');
  const heads = first.columns.map((c, at) => {
    const button = h('button', { type: 'button', class: 'sort' }, c.name);
    button.addEventListener('click', () => {
      isDescending = column === at && !isDescending;
      column = at;
      draw();
    });
    return h('th', { scope: 'col', class: c.isNumber ? 'number' : '' }, button);
  });
  const draw = (): void => {
    const rows = narrowed(table.rows, filter.value);
    if (column >= 0) rows.sort((a, b) => compareCells(a[column], b[column], isDescending));
    const drawn = rows.slice(0, MOST_DRAWN);
    body.replaceChildren(
      ...drawn.map((row) => h('tr', {}, ...row.map((cell, at) => cellElement(cell, at, table.columns[at]?.isNumber ?? false)))),
    );
    told.textContent = `${drawn.length} of ${table.rows.length} shown`;
    heads.forEach((head, at) =>
      head.setAttribute('aria-sort', at !== column ? 'none' : isDescending ? 'descending' : 'ascending'),
    );
  };
  filter.addEventListener('input', draw);
  draw();
  const element = h(
    'div',
    { class: 'sortable' },
    h('p', { class: 'narrow' }, filter, ' ', told),
    h(
      'div',
      { class: 'scroll', role: 'region', tabIndex: 0, aria: { label: first.caption } },
      h('table', {}, h('caption', {}, first.caption), h('thead', {}, h('tr', {}, ...heads)), body),
    ),
  );
  return {
    element,
    show(next) {
      table = next;
      draw();
    },
  };
}

function cellElement(cell: Cell, at: number, isNumber: boolean): Child {
  const names = isNumber ? 'number' : '';
  return at === 0 ? h('th', { scope: 'row', class: names }, visible(cell.text)) : h('td', { class: names }, visible(cell.text));
}
