// Any record as its fields: for records that have no drawing of their own.

import type { Absent } from '../../dom';
import { h } from '../../dom';
import { bytes, count, digits, percent, seconds } from '../../format';
import type { AnyRecord } from '../../source';
import { tableElement } from '../../table';
import { type View, stack } from '../../view';
import { copyButton, facts, section, shellWords } from '../../words';

/** Characters and rows shown at most; the rest is in the copy. */
const MAX_SHOWN = 100_000;
const MAX_ROWS = 500;

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A list that is a table: its items have fields. */
const isTable = (value: unknown): value is Fields[] =>
  Array.isArray(value) && value.length > 0 && value.every(isFields);

/** Units at the ends of names, and how their numbers are written. */
const UNITS: readonly [RegExp, (value: number) => string][] = [
  [/_ns$/, (value) => seconds(value * 1e-9)],
  [/_s$/, seconds],
  [/_?percent$/, (value) => percent(value / 100)],
  [/(^|_)bytes$/, bytes],
];

const nameWords = (name: string): string =>
  name.replace(/_n?s$/, '').replaceAll('_', ' ').replace(/\bcpu/g, 'CPU');

/** A value as words: nothing if it is absent, its parts in short if it has any. */
function valueWords(name: string, value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') {
    const unit = UNITS.find(([end]) => end.test(name));
    if (unit) return unit[1](value);
    return Number.isInteger(value) ? String(value) : digits(value, 4);
  }
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value) && name === 'command')
    return shellWords(value.map(String));
  if (Array.isArray(value))
    return value.map((item) => valueWords(name, item)).join(', ');
  if (!isFields(value)) return String(value);
  return Object.entries(value)
    .map(([part, own]) => [nameWords(part), valueWords(part, own)])
    .filter(([, words]) => words !== '')
    .map(([part, words]) => `${part} ${words}`)
    .join(', ');
}

function table(name: string, rows: readonly Fields[]): HTMLElement {
  // What a sentence says, the fields beside it say again.
  const sentences = rows.map((row) => row['sentence']);
  if (sentences.every((one) => typeof one === 'string'))
    return h('ul', ...sentences.map((one) => h('li', one)));
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const isNumber = (column: string): boolean =>
    rows.every((row) => typeof (row[column] ?? 0) === 'number');
  return tableElement({
    caption: `${nameWords(name)}: ${rows.length > MAX_ROWS ? `the first ${MAX_ROWS} of ` : ''}${count(rows.length, 'row')}`,
    columns: names.map((column) => ({
      name: nameWords(column),
      isNumber: isNumber(column),
    })),
    rows: rows
      .slice(0, MAX_ROWS)
      .map((row) => names.map((column) => valueWords(column, row[column]))),
  });
}

/** Single values first, then a part for each table and each group of fields. */
function parts(fields: Fields): (HTMLElement | Absent)[] {
  const all = Object.entries(fields).filter(([name]) => name !== 'schema');
  const isPart = (value: unknown): boolean => isTable(value) || isFields(value);
  const single = all
    .filter(([, value]) => !isPart(value))
    .map(([name, value]) => [nameWords(name), valueWords(name, value)]);
  return [
    facts(Object.fromEntries(single)),
    ...all.map(([name, value]) =>
      isTable(value)
        ? section(nameWords(name), table(name, value))
        : isFields(value) && section(nameWords(name), ...parts(value)),
    ),
  ];
}

export function plainView(record: AnyRecord): View {
  const text = JSON.stringify(record, null, 2);
  const cut =
    text.length > MAX_SHOWN ? '\n… (cut here; the copy has all of it)' : '';
  return stack('article', 'plain', [
    ...parts(record as unknown as Fields),
    h(
      'details',
      h('summary', 'As JSON'),
      copyButton(text, 'the record'),
      h('pre', { tabIndex: 0 }, text.slice(0, MAX_SHOWN) + cut),
    ),
  ]);
}
