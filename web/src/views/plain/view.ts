// Shows a record's fields; for records without a view of their own.

import type { Absent } from '../../dom';
import { h } from '../../dom';
import { nameCpus } from '../../cpus';
import {
  bytes,
  count,
  digits,
  minute,
  percent,
  seconds,
  wholeNumber,
} from '../../format';
import { adviceLine } from '../../method';
import type { Answer, Maybe } from '../../records';
import type { AnyRecord } from '../../source';
import { tableElement } from '../../table';
import { type Part, type View, stack } from '../../view';
import { copyButton, facts, section, shellWords } from '../../words';
import { commandList } from '../../headline';
import { parseSchema } from '../../schema';
import { LEVELS, composeHeadline, processName } from './headline';
import {
  fleetStatusPart,
  kernelPart,
  placementPart,
  predictionPart,
  replayParts,
  topologyDiffParts,
} from './parts';

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
  [/_s$|^seconds$/, seconds],
  [/_share$|^confidence$/, percent],
  [/_?percent$/, (value) => percent(value / 100)],
  [/(^|_)bytes$/, bytes],
];

/** Names of fields that say too little, or differ from how one speaks. */
const NAMES: Readonly<Record<string, string>> = {
  asked_cpus: 'requested CPUs',
  ended: 'threads that ended',
  from: 'CPUs before',
  isa: 'instruction set',
  isa_version: 'compiled for',
  observations: 'times seen running',
  pid: 'process ID',
  process: 'process ID',
  groups: 'groups of CPUs',
  inside_ns: 'within',
  outside_ns: 'to the nearest other',
  rate: 'rate per second',
  returned: 'threads restored',
  seconds: 'duration',
  to: 'CPUs now',
  working_set_bytes: 'working set per thread',
};

const spellName = (name: string): string =>
  NAMES[name] ??
  name.replace(/_n?s$/, '').replaceAll('_', ' ').replace(/\bcpu/g, 'CPU');

/** Fields whose numbers are names. */
const IS_ID = /^(pid|process|irq|seed)$/;
/** Fields with a list of CPUs. */
const IS_CPU_LIST = /(^|_)cpus$|^(from|to|groups)$/;

/** Formats a value; empty if it is absent. Fields of an object are joined in one line. */
function formatValue(name: string, value: unknown): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') {
    const unit = FORMATS_BY_UNIT.find(([end]) => end.test(name));
    if (unit) return unit[1](value);
    if (/(^|_)cpus$/.test(name)) return count(value, 'CPU');
    if (IS_ID.test(name)) return String(value);
    return Number.isInteger(value) || value >= 1e4
      ? wholeNumber(Math.round(value))
      : digits(value, 4);
  }
  if (typeof value === 'string') {
    if (/^[\d,-]+$/.test(value) && IS_CPU_LIST.test(name))
      return nameCpus(value);
    if (name === 'kind') return LEVELS[value] ?? value;
    return name === 'time' ? `${minute(value)} UTC` : value;
  }
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value) && name === 'command')
    return shellWords(value.map(String));
  if (Array.isArray(value))
    return value
      .map((item) =>
        isFields(item) && item['name']
          ? item['process'] === undefined
            ? String(item['name'])
            : processName(item['name'], item['process'])
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

function fieldTable(rows: readonly Fields[]): HTMLElement {
  const all = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const repeats = (column: string, at: number): boolean =>
    all
      .slice(0, at)
      .some((other) => rows.every((row) => row[column] === row[other]));
  const names = all.filter((column, at) => !repeats(column, at));
  const isNumber = (column: string): boolean =>
    rows.every((row) => typeof (row[column] ?? 0) === 'number');
  return tableElement({
    caption: `${rows.length > MAX_ROWS ? `The first ${MAX_ROWS} of ` : ''}${count(rows.length, 'row')}`,
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
      isTable(value) && section(spellName(name), fieldTable(value)),
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

/** The parts that a kind has of its own, and the names of the fields that they show. */
function ownParts(
  kind: string,
  record: AnyRecord,
): [parts: (Part | HTMLElement)[], shown: RegExp] {
  const any = record as never;
  switch (kind) {
    case 'fleet-status':
      return [[fleetStatusPart(any)], /^(?!notes)/];
    case 'prediction':
      return [
        [predictionPart(any)],
        /^(place|metric|unit|bett|med|check|cover|is_)/,
      ];
    case 'topology-diff':
      return [topologyDiffParts(any), /./];
    case 'placements':
      return [[placementPart(any)], /^(threads|layout)$/];
    case 'kernel':
      return [[kernelPart(any)], /^(threads|seconds|rate)$/];
    case 'replay':
      return [replayParts(any), /^(cpus|levels|flat|cannot_tell)$/];
    case 'rules':
      return [[], /^file$/];
    default:
      return [[], /^$/];
  }
}

export function plainView(record: AnyRecord): View {
  const text = JSON.stringify(record, null, 2);
  const cut =
    text.length > MAX_SHOWN ? '\n… (cut here; the copy has all of it)' : '';
  const kind = parseSchema(record.schema)?.name ?? '';
  const [parts, shown] = ownParts(kind, record);
  const { answer, ...all } = record as AnyRecord & { answer?: Maybe<Answer> };
  const rest = Object.entries(all).filter(([name]) => !shown.test(name));
  const folded = { placements: 'The machine', kernel: 'Settings' }[kind];
  const others = fieldParts(Object.fromEntries(rest));
  const [sentence, next] = composeHeadline(kind, record);
  return stack('article', 'plain', [
    h('p.verdict', answer?.sentence ?? sentence ?? ''),
    next ? commandList([next]) : adviceLine(answer?.advice),
    ...parts,
    ...(folded ? [h('details', h('summary', folded), ...others)] : others),
    h(
      'details',
      h('summary', 'As JSON'),
      copyButton(text, 'the record'),
      h('pre', { tabIndex: 0 }, text.slice(0, MAX_SHOWN) + cut),
    ),
  ]);
}
