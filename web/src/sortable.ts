// A table that is sorted by any column and narrowed by words.

import './sortable.css';

import { type Child, h } from './dom';
import {
  asCards,
  cardLabel,
  toHead,
  isFilled,
  scrollBox,
  type Column,
} from './table';
import { wholeNumber } from './format';
import { finite } from './numbers';

export interface Cell {
  text: string;
  /** Its sort key; the text if absent, and last if `null`. */
  sort?: number | string | null;
  /** An address of this page. */
  href?: string | undefined;
}

/** The cell of a figure; a dash if there is none. */
export const figureCell = (
  value: unknown,
  text: (value: number) => string,
): Cell =>
  finite(value)
    ? { text: text(value), sort: value }
    : { text: '–', sort: null };

export interface SortableTable {
  caption: string;
  columns: readonly Column[];
  rows: readonly (readonly Cell[])[];
}

/** Rows drawn at a time; the filter finds the others. */
const ROWS_AT_A_TIME = 20;

/** Rows that need no filter. */
const MAX_AT_A_GLANCE = 8;

/** Cells with so few characters stay on one line. */
const MAX_SHORT = 12;

/** Order of two cells; unknown ones come last either way. */
export function compareCells(
  a: Cell | undefined,
  b: Cell | undefined,
  isDescending: boolean,
): number {
  const [x, y] = [a, b].map((cell) =>
    cell?.sort === undefined ? (cell?.text ?? null) : cell.sort,
  );
  if (x === null || x === undefined || y === null || y === undefined)
    return (
      (x === null || x === undefined ? 1 : 0) -
      (y === null || y === undefined ? 1 : 0)
    );
  const order =
    typeof x === 'number' && typeof y === 'number'
      ? x - y
      : String(x).localeCompare(String(y), 'en', { numeric: true });
  return isDescending ? -order : order;
}

/** Rows in which every word occurs. */
export function filterRows<T extends readonly Cell[]>(
  rows: readonly T[],
  text: string,
): T[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const rowText = row
      .map((cell) => cell.text)
      .join(' ')
      .toLowerCase();
    return words.every((word) => rowText.includes(word));
  });
}

/** The table as an element; `show` gives it other rows and keeps order and filter. */
export function sortableTable(first: SortableTable): {
  element: HTMLElement;
  show(table: SortableTable): void;
} {
  let table = first;
  let column = -1;
  let isDescending = false;
  let most = ROWS_AT_A_TIME;
  const filter = h('input', {
    type: 'search',
    placeholder: 'Filter',
    aria: { label: `Narrow: ${first.caption}` },
  });
  const status = h('span.muted', { role: 'status' });
  const narrow = h('p.narrow', filter, ' ', status);
  const body = h('tbody');
  const more = h('button.more');
  const heads = first.columns.map((c, at) => {
    const { name, class: align } = toHead(c);
    const button = h('button.sort', name);
    button.addEventListener('click', () => {
      // Figures begin with the largest.
      isDescending = column === at ? !isDescending : align === 'number';
      column = at;
      draw();
    });
    return h('th', { scope: 'col', class: align }, button);
  });
  const draw = (): void => {
    const isShown = heads.map(
      (_, at) =>
        table.rows.length === 0 ||
        table.rows.some((row) => isFilled(row[at]?.text)),
    );
    const rows = filterRows(table.rows, filter.value);
    if (column >= 0)
      rows.sort((a, b) => compareCells(a[column], b[column], isDescending));
    const drawn = rows.slice(0, most);
    body.replaceChildren(
      ...drawn.map((row) =>
        h(
          'tr',
          ...row.map(
            (cell, at) =>
              isShown[at] &&
              cellElement(cell, at, toHead(table.columns[at] ?? '')),
          ),
        ),
      ),
    );
    asCards(box);
    narrow.hidden = table.rows.length <= MAX_AT_A_GLANCE;
    status.textContent = `${wholeNumber(drawn.length)} of ${wholeNumber(table.rows.length)} shown`;
    more.hidden = drawn.length === rows.length;
    more.textContent = `Show ${Math.min(ROWS_AT_A_TIME, rows.length - drawn.length)} more`;
    heads.forEach((head, at) => {
      head.hidden = !isShown[at];
      head.setAttribute(
        'aria-sort',
        at !== column ? 'none' : isDescending ? 'descending' : 'ascending',
      );
    });
  };
  filter.addEventListener('input', () => {
    most = ROWS_AT_A_TIME;
    draw();
  });
  more.addEventListener('click', () => {
    most += ROWS_AT_A_TIME;
    draw();
  });
  const box = scrollBox(first.caption, heads, body);
  draw();
  return {
    element: h('div.sortable', narrow, box, more),
    show(next) {
      table = next;
      draw();
    },
  };
}

function cellElement(
  cell: Cell,
  at: number,
  { name: label, class: align }: ReturnType<typeof toHead>,
): Child {
  const content =
    cell.href === undefined
      ? cell.text
      : h('a', { href: cell.href }, cell.text);
  if (at === 0) return h('th', { scope: 'row', class: align }, content);
  const isShort = cell.text.length <= MAX_SHORT;
  const names = isShort ? `${align} short` : align;
  return h('td', { class: names, data: cardLabel(label, cell.text) }, content);
}
