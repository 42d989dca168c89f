// Values for the spin settings of known runtimes, and the loops of a binary.

import './style.css';

import { chart } from '../../chart';
import { h } from '../../dom';
import { items, list, texts } from '../../fields';
import { quantity, wholeNumber } from '../../format';
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
import { facts, findingList, section } from '../../words';
import { gapPlan, groupEqualLoops, scanSentence } from './scan';
import { budgetSentence, nameSetting, processorSentence } from './shape';
import { mapNumber } from '../../numbers';

const formatNanoseconds = (value: number | null | undefined): string | null =>
  mapNumber(value, (value) => quantity(value, 'ns'));

/** Draws a `pinwise.spin-advice/1`. */
export function spinAdviceView(record: AnyRecord, _page: Page): View {
  const advice = record as SpinAdviceRecord;
  const notes = texts(advice.notes);
  return stack('article', '', [
    h('p.verdict', budgetSentence(advice)),
    // They say what the figures stand for.
    notes.length > 0 &&
      findingList(notes.map((sentence) => ({ severity: 'note', sentence }))),
    adviceLine(
      'Open the setting of your runtime for the reason and a command that verifies it.',
    ),
    settingTable(items(advice.advice)),
    h('p', advice.rule ?? ''),
    h(
      'p.muted',
      `${processorSentence(advice.processor)} Taken for a wake-up: ${formatNanoseconds(advice.futex_wake_ns) ?? '–'}; for a context switch: ${formatNanoseconds(advice.context_switch_ns) ?? '–'}.`,
    ),
  ]);
}

/** Each setting once, its reason and command folded; those without a change last. */
const settingTable = (rows: readonly AdviceRecord[]): HTMLElement =>
  tableElement({
    caption:
      'Spin settings, and how long they spin there; suggested is the nearest value that each can have',
    columns: [
      'Setting',
      ...numberColumns('Default', 'Spins', 'Suggested', 'Would spin'),
    ],
    rows: [...rows]
      .sort((a, b) => Number(!a.suggested) - Number(!b.suggested))
      .map((row) => [
        settingPart(row, nameSetting(row, rows)),
        row.usual,
        formatNanoseconds(row.usual_ns),
        row.suggested ?? 'no change',
        formatNanoseconds(row.suggested_ns),
      ]),
  });

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
    h('p.verdict', scanSentence(scan)),
    adviceLine(
      'See whether a program that runs spends time in them: pinwise spin attach --pid PID.',
    ),
    gaps && chart(gaps),
    section('Loops', loopTable(scan)),
    section(
      'Where the figures are from',
      facts(
        Object.fromEntries(
          list(scan.chips).map(({ id, source }) => [`PAUSE, ${id}`, source]),
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
      ...chips.map((chip) => ({ name: chip.id ?? '–', isNumber: true })),
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
