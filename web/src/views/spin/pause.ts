// What the spin-wait hint costs on each CPU, and where that stands among chips.

import type { ChartPlan } from '../../chart';
import { chart } from '../../chart';
import { h, visible } from '../../dom';
import { fixed, percent, quantity } from '../../format';
import type { Panel } from '../../plot';
import { seriesColour } from '../../plot';
import type { CpuPauseRecord, SpinPauseRecord } from '../../records';
import type { AnyRecord } from '../../source';
import { tableElement, numberColumns } from '../../table';
import type { Page, Part, View } from '../../view';
import { stack } from '../../view';
import { facts, hostFacts, section } from '../../words';

/** Draws a `pinwise.spin-pause/1`. */
export function spinPauseView(record: AnyRecord, _page: Page): View {
  const pause = record as SpinPauseRecord;
  const cpus = (pause.cpus ?? []).filter((c) => typeof c.pause_ns === 'number');
  const plot: Part | null = cpus.length > 0 ? chart(plan(pause, cpus)) : null;
  const notes = [
    ...(pause.counter_unavailable ? [pause.counter_unavailable] : []),
    ...(pause.notes ?? []),
  ];
  return stack('article', '', [
    h('p', { class: 'verdict' }, visible(sentence(pause, cpus))),
    pause.check?.sentence
      ? h(
          'p',
          {},
          h('strong', {}, pause.check.is_fine ? 'Fine: ' : 'Too long: '),
          visible(pause.check.sentence),
        )
      : null,
    ...(pause.chips ?? []).map((c) =>
      h('p', {}, c.cpus ? `CPUs ${c.cpus}: ` : '', visible(c.sentence ?? '')),
    ),
    plot,
    section('Per CPU', cpuTable(pause)),
    chipTable(pause),
    notes.length > 0
      ? h(
          'ul',
          {},
          ...notes.map((note) => h('li', { class: 'muted' }, visible(note))),
        )
      : null,
    section(
      'How it was measured',
      facts([
        [
          'Took',
          typeof pause.spent_s === 'number'
            ? quantity(pause.spent_s, 's')
            : null,
        ],
        ...hostFacts(pause.host),
      ]),
    ),
  ]);
}

function sentence(
  record: SpinPauseRecord,
  cpus: readonly CpuPauseRecord[],
): string {
  const values = cpus.map((c) => c.pause_ns!);
  if (values.length === 0) return 'No cost was measured.';
  const [low, high] = [
    quantity(Math.min(...values), 'ns'),
    quantity(Math.max(...values), 'ns'),
  ];
  return `${record.instruction ?? 'The hint'} takes ${low === high ? low : `${low} to ${high}`} on ${values.length === 1 ? '1 CPU' : `${values.length} CPUs`}.`;
}

function plan(
  record: SpinPauseRecord,
  cpus: readonly CpuPauseRecord[],
): ChartPlan {
  const levels = cpus.flatMap((c, y) =>
    (c.levels ?? []).flatMap((l) =>
      typeof l.pause_ns === 'number' ? [{ x: l.pause_ns, y }] : [],
    ),
  );
  const tooltip = (point: { x: number; y: number }): string =>
    `CPU ${cpus[point.y]?.cpu ?? ''}\n${quantity(point.x, 'ns')}`;
  return {
    name: `Cost of a ${record.instruction ?? 'hint'}`,
    summary: `${sentence(record, cpus)} Lines are 95 % intervals${levels.length > 0 ? '; hollow diamonds are two levels, as a neighbour on the core makes them' : ''}.`,
    panels: (): Panel[] => [
      {
        height: 22 * cpus.length,
        x: {
          title: `time of a ${record.instruction ?? 'hint'}`,
          hasZero: true,
          label: (ns) => quantity(ns, 'ns'),
        },
        y: { title: 'CPU', names: cpus.map((c) => `CPU ${c.cpu}`) },
        series: [
          {
            interval: 'x',
            colour: seriesColour(0),
            points: cpus.map((c, y) => ({
              x: c.pause_ns!,
              y,
              low: c.pause_ns_low ?? null,
              high: c.pause_ns_high ?? null,
              tooltip: tooltip({ x: c.pause_ns!, y }),
            })),
          },
          {
            shape: 'diamond',
            isHollow: true,
            colour: seriesColour(1),
            points: levels.map((level) => ({
              ...level,
              tooltip: tooltip(level),
            })),
          },
        ],
      },
    ],
  };
}

function cpuTable(record: SpinPauseRecord): HTMLElement {
  const range = (
    low: number | null | undefined,
    high: number | null | undefined,
    text: (value: number) => string,
  ): string | null =>
    typeof low === 'number' && typeof high === 'number'
      ? `${text(low)} to ${text(high)}`
      : null;
  return tableElement({
    caption: 'Medians with 95 % intervals',
    columns: [
      ...numberColumns('CPU', 'Time', '95 %', 'Cycles', '95 %'),
      { name: 'Counted by' },
      { name: 'Clock', isNumber: true },
      { name: 'Levels' },
      { name: 'Other hints' },
    ],
    rows: (record.cpus ?? []).map((c) => [
      c.cpu,
      typeof c.pause_ns === 'number' ? quantity(c.pause_ns, 'ns') : null,
      range(c.pause_ns_low, c.pause_ns_high, (ns) => quantity(ns, 'ns')),
      typeof c.pause_cycles === 'number' ? fixed(c.pause_cycles, 1) : null,
      range(c.pause_cycles_low, c.pause_cycles_high, (cycles) =>
        fixed(cycles, 1),
      ),
      c.method,
      typeof c.ghz === 'number' ? `${fixed(c.ghz, 2)} GHz` : null,
      (c.levels ?? [])
        .map((l) => {
          const cost =
            typeof l.pause_cycles === 'number'
              ? `${fixed(l.pause_cycles, 0)} cycles`
              : quantity(l.pause_ns, 'ns');
          return `${cost} (${percent(l.share, 0)})`;
        })
        .join(', '),
      (c.hints ?? [])
        .map((x) => `${x.hint ?? ''} ${quantity(x.ns, 'ns')}`)
        .join(', '),
    ]),
  });
}

function chipTable(record: SpinPauseRecord): HTMLElement | null {
  const chips = record.chips ?? [];
  if (chips.length === 0) return null;
  return section(
    'Among known chips',
    tableElement({
      caption: 'Published cost of the chip that this seems to be',
      columns: [
        { name: 'Chip' },
        { name: 'CPUs' },
        ...numberColumns('Published, cycles', 'Measured'),
        { name: 'Agrees' },
        { name: 'Chips with a cheaper one' },
      ],
      rows: chips.map((c) => [
        c.name,
        c.cpus,
        typeof c.published_low === 'number'
          ? c.published_high && c.published_high !== c.published_low
            ? `${c.published_low} to ${c.published_high}`
            : String(c.published_low)
          : null,
        typeof c.measured_cycles === 'number'
          ? fixed(c.measured_cycles, 1)
          : null,
        c.agrees === null || c.agrees === undefined
          ? null
          : c.agrees
            ? 'yes'
            : 'no',
        typeof c.cheaper_chips === 'number'
          ? `${c.cheaper_chips} of ${c.known_chips ?? '?'}`
          : null,
      ]),
    }),
    ...[...new Set(chips.map((c) => c.source ?? ''))]
      .filter(Boolean)
      .map((source) =>
        h('p', { class: 'muted' }, visible(`Published by ${source}.`)),
      ),
  );
}
