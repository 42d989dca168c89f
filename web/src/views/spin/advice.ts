// Values for the spin settings of known runtimes, and the loops of a binary.

import './style.css';

import { chart } from '../../chart';
import { h } from '../../dom';
import { items, list, texts } from '../../fields';
import { digits, quantity, wholeNumber } from '../../format';
import { commandList } from '../../headline';
import { adviceLine } from '../../method';
import type {
  AdviceRecord,
  SpinAdviceRecord,
  SpinScan,
  Maybe,
} from '../../records';
import { type Cell, sortableTable, figureCell } from '../../sortable';
import type { AnyRecord } from '../../source';
import { numberColumns, tableElement } from '../../table';
import { type Page, type View, stack } from '../../view';
import { facts, section } from '../../words';
import { gapPlan, groupEqualLoops, nameChip } from './scan';
import { nameSetting, processorSentence } from './shape';
import { mapNumber } from '../../numbers';

/** In one unit, whatever the size: the times of a table are compared with each other. */
const formatMicroseconds = (ns: Maybe<number>): string | null =>
  mapNumber(ns, (ns) => {
    const us = ns / 1e3;
    return `${us < 1e3 ? digits(us) : wholeNumber(Math.round(us))} µs`;
  });

/** Draws a `pinwise.spin-advice/1`. */
export function spinAdviceView(record: AnyRecord, _page: Page): View {
  const advice = record as SpinAdviceRecord;
  const { answer, measured_on: host } = advice;
  return stack('article', '', [
    h('p.verdict', answer?.sentence ?? ''),
    adviceLine(answer?.advice),
    settingTable(advice),
    h(
      'details',
      h('summary', 'Where the figures are from'),
      ...[advice.rule, ...texts(advice.notes)].map((one) => h('p', one ?? '')),
      h(
        'p',
        `${processorSentence(advice.processor)} Measured${host ? ` on ${host}` : ''}: a wake-up takes ${formatMicroseconds(advice.futex_wake_ns) ?? '–'}, a context switch ${formatMicroseconds(advice.context_switch_ns) ?? '–'}.`,
      ),
    ),
  ]);
}

/** Each setting once, its reason and command folded; those without a change last. */
function settingTable(advice: SpinAdviceRecord): HTMLElement {
  const rows = items(advice.advice);
  return tableElement({
    caption: `Suggested values spin for about ${formatMicroseconds(advice.budget_ns) ?? 'as long as parking costs'}; no change where a setting does already, or adapts itself. Open one for its reason`,
    columns: [
      'Setting',
      ...numberColumns('Default', 'Spins', 'Suggested', 'Would spin'),
    ],
    rows: [...rows]
      .sort((a, b) => Number(!a.suggested) - Number(!b.suggested))
      .map((row) => [
        settingPart(row, nameSetting(row, rows)),
        row.usual,
        formatMicroseconds(row.usual_ns),
        row.suggested ?? 'no change',
        formatMicroseconds(row.suggested_ns),
      ]),
  });
}

const settingPart = (row: AdviceRecord, name: string): HTMLElement =>
  h(
    'details',
    h('summary', name),
    h('p', row.reasoning ?? ''),
    facts({ How: row.how, Versions: row.versions }),
    row.verify && commandList([['Verify', row.verify]]),
  );

/** Draws a `pinwise.spin-scan/1`. */
export function spinScanView(record: AnyRecord, _page: Page): View {
  const scan = record as SpinScan;
  const gaps = gapPlan(scan);
  return stack('article', '', [
    h('p.verdict', scan.answer?.sentence ?? ''),
    adviceLine(scan.answer?.advice),
    gaps && chart(gaps),
    section('Loops', loopTable(scan)),
    h(
      'details',
      h('summary', 'What one PAUSE takes on each chip, and its source'),
      facts(
        Object.fromEntries(
          list(scan.chips).map(({ id, pause_ns, source }) => [
            nameChip(id ?? '', scan),
            `${quantity(pause_ns, 'ns')}: ${source ?? ''}`,
          ]),
        ),
      ),
    ),
  ]);
}

function loopTable(scan: SpinScan): HTMLElement {
  const chips = list(scan.chips);
  const hasBinaries = list(scan.binaries).length > 1;
  const gap = (value: Maybe<number>): Cell =>
    figureCell(value, (one) => quantity(one, 'ns'));
  const hints = (value: number | null | undefined): Cell =>
    typeof value === 'number'
      ? { text: value.toLocaleString('en-US'), sort: value }
      : { text: 'unknown', sort: null };
  return sortableTable({
    caption:
      'Loops with spin hints, and the longest time between two checks on known chips; equal loops share a row',
    columns: [
      'Function',
      'Kind',
      { name: 'Loops', isNumber: true },
      { name: 'Hints between checks', isNumber: true },
      ...numberColumns(...chips.map(({ id }) => nameChip(id ?? '–', scan))),
      'Algorithm',
      'Address',
      ...(hasBinaries ? ['Binary'] : []),
    ],
    rows: groupEqualLoops(scan).map(([loop, ...others]) => [
      { text: loop.function ?? '–' },
      {
        text:
          (loop.kind ?? '').replaceAll('_', ' ') +
          (loop.fails === true ? ', too long' : ''),
      },
      { text: wholeNumber(1 + others.length), sort: 1 + others.length },
      hints(loop.gap_hints),
      ...chips.map((chip) =>
        gap(loop.gaps?.find((one) => one.chip === chip.id)?.ns),
      ),
      {
        text: list(loop.algorithms)
          .map((a) => a.id ?? '')
          .join(', '),
      },
      {
        text: `${loop.address ?? ''}${others.length > 0 ? ' …' : ''}`,
      },
      ...(hasBinaries
        ? [{ text: scan.binaries?.[loop.binary ?? -1]?.path ?? '' }]
        : []),
    ]),
  }).element;
}
