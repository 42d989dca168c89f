// Values for the spin settings of known runtimes, and the loops of a binary.

import './style.css';

import { h, visible } from '../../dom';
import { quantity } from '../../format';
import { commandList } from '../../headline';
import type { AdviceRecord, SpinAdviceRecord, SpinScan } from '../../records';
import type { Cell } from '../../sortable';
import { sortableTable } from '../../sortable';
import type { AnyRecord } from '../../source';
import type { Page, View } from '../../view';
import { stack } from '../../view';
import { facts, section } from '../../words';
import { processorSentence } from './shape';

const ns = (value: number | null | undefined): string | null =>
  typeof value === 'number' ? quantity(value, 'ns') : null;

/** Draws a `pinwise.spin-advice/1`. */
export function spinAdviceView(record: AnyRecord, _page: Page): View {
  const advice = record as SpinAdviceRecord;
  const rows = advice.advice ?? [];
  return stack('article', '', [
    h(
      'p',
      { class: 'verdict' },
      `Spin at most ${ns(advice.budget_ns) ?? '–'}${typeof advice.budget_pauses === 'number' ? `, ${advice.budget_pauses.toLocaleString('en-US')} PAUSEs` : ''}: what parking and waking costs here.`,
    ),
    h('p', {}, visible(advice.rule ?? '')),
    h(
      'p',
      { class: 'muted' },
      visible(
        `${processorSentence(advice.processor)} A wake-up takes ${ns(advice.futex_wake_ns) ?? '–'}, a context switch ${ns(advice.context_switch_ns) ?? '–'}.`,
      ),
    ),
    section('Settings', ...rows.map(settingPart)),
    ...(advice.notes ?? []).map((note) =>
      h('p', { class: 'muted' }, visible(note)),
    ),
  ]);
}

function settingPart(row: AdviceRecord): HTMLElement {
  const spins = (
    value: string | null | undefined,
    time: number | null | undefined,
  ): string | null =>
    value ? `${value}${ns(time) ? `, spins ${ns(time)}` : ''}` : null;
  return h(
    'div',
    { class: 'place' },
    h('h3', {}, visible(`${row.runtime ?? ''}: ${row.setting ?? ''}`)),
    facts([
      ['How', row.how],
      ['Usual', spins(row.usual, row.usual_ns)],
      ['Suggested', spins(row.suggested, row.suggested_ns) ?? 'nothing'],
      ['Why', row.reasoning],
    ]),
    row.verify ? commandList([['Verify', row.verify]]) : null,
  );
}

/** Draws a `pinwise.spin-scan/1`. */
export function spinScanView(record: AnyRecord, _page: Page): View {
  const scan = record as SpinScan;
  const loops = scan.loops ?? [];
  const chips = scan.chips ?? [];
  const gap = (value: number | null | undefined): Cell =>
    typeof value === 'number'
      ? { text: quantity(value, 'ns'), sort: value }
      : { text: '–', sort: null };
  const fails = loops.filter((loop) => loop.fails === true).length;
  const judged =
    scan.passed === null || scan.passed === undefined
      ? ''
      : scan.passed
        ? ' All are within the limit.'
        : ` ${fails} are beyond the limit of ${ns(scan.max_blind_gap_ns) ?? '–'}.`;
  return stack('article', '', [
    h(
      'p',
      { class: 'verdict' },
      `${loops.length === 1 ? '1 loop hints' : `${loops.length} loops hint`} in ${(scan.binaries ?? []).length === 1 ? visible(scan.binaries![0]!.path ?? 'the binary') : `${(scan.binaries ?? []).length} binaries`}.${judged}`,
    ),
    section(
      'Loops',
      sortableTable({
        caption:
          'Loops with spin hints, and the longest time without a look on known chips',
        columns: [
          { name: 'Address' },
          { name: 'Function' },
          { name: 'Kind' },
          { name: 'Hints without a look', isNumber: true },
          { name: 'Known from' },
          ...chips.map((chip) => ({ name: chip.id ?? '–', isNumber: true })),
          { name: 'Algorithm' },
          { name: 'Binary' },
        ],
        rows: loops.map((loop) => [
          { text: loop.address ?? '' },
          { text: loop.function ?? '–' },
          {
            text:
              (loop.kind ?? '').replaceAll('_', ' ') +
              (loop.fails === true ? ', too long' : ''),
          },
          typeof loop.gap_hints === 'number'
            ? {
                text: loop.gap_hints.toLocaleString('en-US'),
                sort: loop.gap_hints,
              }
            : { text: 'unknown', sort: null },
          { text: loop.gap_from ?? '–' },
          ...chips.map((chip) =>
            gap(loop.gaps?.find((one) => one.chip === chip.id)?.ns),
          ),
          { text: (loop.algorithms ?? []).map((a) => a.id ?? '').join(', ') },
          { text: scan.binaries?.[loop.binary ?? -1]?.path ?? '' },
        ]),
      }).element,
    ),
  ]);
}
