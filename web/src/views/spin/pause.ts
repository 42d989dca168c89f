// The cost of the spin-wait hint: a sentence, and a table of the CPUs.

import { h } from '../../dom';
import { count, fixed, percent, quantity } from '../../format';
import { adviceLine } from '../../method';
import type { LevelRecord, SpinPauseRecord } from '../../records';
import type { AnyRecord } from '../../source';
import { numberColumns, tableElement } from '../../table';
import { type Page, type View, stack } from '../../view';
import { facts, hostFacts, section } from '../../words';
import { filterMap } from '../../lists';
import { mapNumber } from '../../numbers';

type Maybe = number | null | undefined;

/** Draws a `pinwise.spin-pause/1`. */
export function spinPauseView(record: AnyRecord, _page: Page): View {
  const pause = record as SpinPauseRecord;
  const { check } = pause;
  const chips = (pause.chips ?? []).map(({ cpus, sentence }) =>
    cpus && (pause.chips?.length ?? 0) > 1
      ? `CPUs ${cpus}: ${sentence}`
      : sentence,
  );
  const notes = [describeCounter(pause), ...(pause.notes ?? [])];
  const paragraphs = (
    all: readonly (string | null | undefined)[],
    look: string,
  ): HTMLElement[] =>
    filterMap(all, (text) => (text ? h('p', { class: look }, text) : null));
  return stack('article', '', [
    h('p.verdict', costSentence(pause)),
    ...paragraphs([check?.sentence], ''),
    adviceLine(
      check?.is_fine === false
        ? 'Find such waits in a program: pinwise spin scan PROGRAM.'
        : check
          ? 'Get settings for spin loops on this machine: pinwise spin advise.'
          : 'See whether known locks would wait too long here: pinwise spin pause --check.',
    ),
    cpuTable(pause),
    ...paragraphs([...chips, ...notes], 'muted'),
    h(
      'details',
      h('summary', 'Published figures, and how it was measured'),
      chipTable(pause),
      section(
        'How it was measured',
        facts({
          Took: mapNumber(pause.spent_s, (spentS) => quantity(spentS, 's')),
          ...hostFacts(pause.host),
        }),
      ),
    ),
  ]);
}

/** "PAUSE takes 27.6 ns (77 cycles) on 2 CPUs." */
export function costSentence(record: SpinPauseRecord): string {
  const cpus = (record.cpus ?? []).filter(
    (c) => typeof c.pause_ns === 'number',
  );
  if (cpus.length === 0) return 'No cost was measured.';
  const ends = (values: readonly number[], text: (value: number) => string) =>
    formatRange(Math.min(...values), Math.max(...values), text);
  const time = ends(
    cpus.map((c) => c.pause_ns!),
    (ns) => quantity(ns, 'ns'),
  );
  const cycles = filterMap(cpus, ({ pause_cycles: cycles }) =>
    typeof cycles === 'number' ? cycles : null,
  );
  const counted =
    cycles.length > 0 ? ` (${ends(cycles, (c) => fixed(c, 0))} cycles)` : '';
  return `${record.instruction ?? 'The hint'} takes ${time}${counted} on ${count(cpus.length, 'CPU')}.`;
}

/** Why there is no cycle counter, and how cycles were counted without it. */
export function describeCounter(record: SpinPauseRecord): string {
  const why = record.counter_unavailable ?? '';
  const isTimed = record.cpus?.some(({ method }) => method === 'add-chain');
  return why && isTimed
    ? `${why} Cycles are derived from the clock, by timing dependent additions.`
    : why;
}

/** "27.5 ns to 27.7 ns"; one figure if both are the same. */
function formatRange(
  low: Maybe,
  high: Maybe,
  text: (value: number) => string,
): string | null {
  if (typeof low !== 'number' || typeof high !== 'number') return null;
  return [...new Set([low, high].map(text))].join(' to ');
}

/** "27.6 ns (27.5 ns to 27.7 ns)"; without an interval that rounds to the figure. */
export function withInterval(
  value: Maybe,
  low: Maybe,
  high: Maybe,
  text: (value: number) => string,
): string | null {
  if (typeof value !== 'number') return null;
  const interval = formatRange(low, high, text);
  return interval === null || interval === text(value)
    ? text(value)
    : `${text(value)} (${interval})`;
}

const cpuTable = (record: SpinPauseRecord): HTMLElement =>
  tableElement({
    caption:
      'Medians, with 95 % intervals where they are wider than the figure',
    columns: [
      'CPU',
      ...numberColumns('Time', 'Cycles', 'Clock'),
      'Two levels',
      'Other hints',
    ],
    rows: (record.cpus ?? []).map((c) => [
      `CPU ${c.cpu}`,
      withInterval(c.pause_ns, c.pause_ns_low, c.pause_ns_high, (ns) =>
        quantity(ns, 'ns'),
      ),
      withInterval(
        c.pause_cycles,
        c.pause_cycles_low,
        c.pause_cycles_high,
        (cycles) => fixed(cycles, 1),
      ),
      mapNumber(c.ghz, (ghz) => `${fixed(ghz, 2)} GHz`),
      (c.levels ?? [])
        .map((l) => `${levelCost(l)} (${percent(l.share, 0)})`)
        .join(', '),
      (c.hints ?? [])
        .map((x) => `${x.hint ?? ''} ${quantity(x.ns, 'ns')}`)
        .join(', '),
    ]),
  });

const levelCost = ({ pause_cycles, pause_ns }: LevelRecord): string =>
  typeof pause_cycles === 'number'
    ? `${fixed(pause_cycles, 0)} cycles`
    : quantity(pause_ns, 'ns');

function chipTable(record: SpinPauseRecord): HTMLElement | null {
  const chips = record.chips ?? [];
  if (chips.length === 0) return null;
  const yesOrNo = (agrees: boolean | null | undefined): string | null =>
    typeof agrees === 'boolean' ? (agrees ? 'yes' : 'no') : null;
  const sources = new Set(chips.map((c) => c.source ?? ''));
  return section(
    'Among known chips',
    tableElement({
      caption: 'Published cost of the chip that this seems to be',
      columns: [
        'Chip',
        'CPUs',
        ...numberColumns('Published, cycles', 'Measured'),
        'Agrees',
        'Chips with a cheaper one',
      ],
      rows: chips.map((c) => [
        c.name,
        c.cpus,
        formatRange(c.published_low, c.published_high, String),
        mapNumber(c.measured_cycles, (measuredCycles) =>
          fixed(measuredCycles, 1),
        ),
        yesOrNo(c.agrees),
        mapNumber(
          c.cheaper_chips,
          (cheaperChips) => `${cheaperChips} of ${c.known_chips ?? '?'}`,
        ),
      ]),
    }),
    ...[...sources]
      .filter(Boolean)
      .map((source) => h('p.muted', `Published by ${source}.`)),
  );
}
