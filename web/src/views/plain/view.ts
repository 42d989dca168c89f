// Shows a record's fields; for records without a view of their own.

import type { Absent } from '../../dom';
import { h } from '../../dom';
import { bytes, count, digits, percent, seconds } from '../../format';
import type { AnyRecord } from '../../source';
import { tableElement } from '../../table';
import { type View, stack } from '../../view';
import { copyButton, facts, section, shellWords } from '../../words';
import { commandList } from '../../headline';
import { parseSchema } from '../../schema';
import { composeHeadline } from './headline';

/** Maximum of shown characters and rows; the copied record has all. */
const MAX_SHOWN = 100_000;
const MAX_ROWS = 500;

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A list that is a table: its items have fields. */
const isTable = (value: unknown): value is Fields[] =>
  Array.isArray(value) && value.length > 0 && value.every(isFields);

/** Units at the ends of names, and how their numbers are written. */
const FORMATS_BY_UNIT: readonly [RegExp, (value: number) => string][] = [
  [/_ns$/, (value) => seconds(value * 1e-9)],
  [/_s$/, seconds],
  [/_?percent$/, (value) => percent(value / 100)],
  [/(^|_)bytes$/, bytes],
];

const spellName = (name: string): string =>
  name.replace(/_n?s$/, '').replaceAll('_', ' ').replace(/\bcpu/g, 'CPU');

/** Formats a value; empty if it is absent. Fields of an object are joined in one line. */
function formatValue(name: string, value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') {
    const unit = FORMATS_BY_UNIT.find(([end]) => end.test(name));
    if (unit) return unit[1](value);
    return Number.isInteger(value) ? String(value) : digits(value, 4);
  }
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value) && name === 'command')
    return shellWords(value.map(String));
  if (Array.isArray(value))
    return value
      .map((item) =>
        isFields(item) && item['name']
          ? String(item['name'])
          : formatValue(name, item),
      )
      .join(', ');
  if (!isFields(value)) return String(value);
  return Object.entries(value)
    .map(([part, own]) => [spellName(part), formatValue(part, own)])
    .filter(([, words]) => words !== '')
    .map(([part, words]) => `${part} ${words}`)
    .join(', ');
}

function fieldTable(name: string, rows: readonly Fields[]): HTMLElement {
  // The other fields only repeat what the sentence says.
  const sentences = rows.map((row) => row['sentence']);
  if (sentences.every((one) => typeof one === 'string'))
    return h('ul', ...sentences.map((one) => h('li', one)));
  const all = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const repeats = (column: string, at: number): boolean =>
    all
      .slice(0, at)
      .some((other) => rows.every((row) => row[column] === row[other]));
  const names = all.filter((column, at) => !repeats(column, at));
  const isNumber = (column: string): boolean =>
    rows.every((row) => typeof (row[column] ?? 0) === 'number');
  return tableElement({
    caption: `${spellName(name)}: ${rows.length > MAX_ROWS ? `the first ${MAX_ROWS} of ` : ''}${count(rows.length, 'row')}`,
    columns: names.map((column) => ({
      name: spellName(column),
      isNumber: isNumber(column),
    })),
    rows: rows
      .slice(0, MAX_ROWS)
      .map((row) => names.map((column) => formatValue(column, row[column]))),
  });
}

/** Tables first: they have the answer; then single values, and a part for each group of fields. */
function fieldParts(fields: Fields): (HTMLElement | Absent)[] {
  const all = Object.entries(fields).filter(([name]) => name !== 'schema');
  const isPart = (value: unknown): boolean => isTable(value) || isFields(value);
  const single = all
    .filter(([, value]) => !isPart(value))
    .map(([name, value]) => [spellName(name), formatValue(name, value)]);
  const tables = all.map(
    ([name, value]) =>
      isTable(value) && section(spellName(name), fieldTable(name, value)),
  );
  const values = facts(Object.fromEntries(single));
  return [
    ...tables,
    tables.some(Boolean) && single.some(([, words]) => words)
      ? section('Details', values)
      : values,
    ...all.map(
      ([name, value]) =>
        isFields(value) && section(spellName(name), ...fieldParts(value)),
    ),
  ];
}

export function plainView(record: AnyRecord): View {
  const text = JSON.stringify(record, null, 2);
  const cut =
    text.length > MAX_SHOWN ? '\n… (cut here; the copy has all of it)' : '';
  const kind = parseSchema(record.schema)?.name ?? '';
  const [sentence, next] = composeHeadline(kind, record);
  return stack('article', 'plain', [
    sentence && h('p.verdict', sentence),
    next && commandList([next]),
    ...fieldParts(record as unknown as Fields),
    h(
      'details',
      h('summary', 'As JSON'),
      copyButton(text, 'the record'),
      h('pre', { tabIndex: 0 }, text.slice(0, MAX_SHOWN) + cut),
    ),
  ]);
}
