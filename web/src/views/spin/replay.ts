// A replay: what was predicted beside what was measured, and what contention did.

import type { ChartPlan } from '../../chart';
import { chart } from '../../chart';
import { h, visible } from '../../dom';
import { count, fixed, percent, quantity, seconds } from '../../format';
import type { Axis, Panel, Series } from '../../plot';
import { COLOURS, seriesColour } from '../../plot';
import type {
  ContentionCell,
  Having,
  ReplayedAlgorithm,
  SpinReplayRecord,
} from '../../records';
import { wholeTicks } from '../../scales';
import type { AnyRecord } from '../../source';
import { tableElement, numberColumns } from '../../table';
import type { Page, View } from '../../view';
import { stack } from '../../view';
import { facts, hostFacts, section } from '../../words';
import type { ReplayPoint } from './shape';
import { replayPoints } from './shape';

/** Draws a `pinwise.spin-replay/1`. */
export function spinReplayView(record: AnyRecord, _page: Page): View {
  const known = record as SpinReplayRecord;
  const replay = {
    ...known,
    algorithms: (known.algorithms ?? []).filter(
      (of) => typeof of.algorithm === 'string',
    ),
  };
  const conclusions = replay.conclusions ?? [];
  const plots = (replay.algorithms ?? []).flatMap((of) =>
    [latenessPlan(of, replay), ...contentionPlans(of)]
      .filter((plan) => plan !== null)
      .map(chart),
  );
  return stack('article', '', [
    h(
      'p',
      { class: 'verdict' },
      visible(conclusions[0] ?? 'No conclusion was drawn.'),
    ),
    ...conclusions.slice(1).map((sentence) => h('p', {}, visible(sentence))),
    ...(replay.notes ?? []).map((note) =>
      h('p', { class: 'muted' }, visible(note)),
    ),
    ...plots,
    section('How it was measured', method(replay)),
  ]);
}

const us = (value: number): string => seconds(value * 1e-6);

function latenessPlan(
  of: ReplayedAlgorithm,
  record: SpinReplayRecord,
): ChartPlan | null {
  const points = replayPoints(of, record.experiment);
  if (
    !points.some((p) =>
      [p.predicted, p.measured, p.low, p.high].some((v) => v !== null && v > 0),
    )
  )
    return null;
  const isHandoff = record.experiment === 'handoff';
  return {
    name: `How late the waiter is: ${of.algorithm}`,
    summary: latenessSummary(of, points),
    panels: (): Panel[] => [
      {
        height: 240,
        x: {
          title: isHandoff ? 'lock held for' : 'waiter comes after',
          label: (x) => seconds(x / 1e3),
        },
        y: { title: 'lateness', type: 'log', label: us },
        series: latenessSeries(points),
      },
    ],
    table: {
      caption: `${of.algorithm}: lateness predicted and measured`,
      columns: [
        { name: isHandoff ? 'Held' : 'Delay', isNumber: true },
        ...numberColumns('Predicted', 'Measured', 'Quartiles', 'Error'),
        { name: 'Stable' },
      ],
      rows: points.map((p) => [
        `${p.at_ms} ms`,
        p.predicted === null ? null : us(p.predicted),
        p.measured === null ? null : us(p.measured),
        p.low !== null && p.high !== null
          ? `${us(p.low)} to ${us(p.high)}`
          : null,
        p.error === null
          ? null
          : `${p.error > 0 ? '+' : '−'}${fixed(Math.abs(p.error), 1)} %`,
        p.isUnstable
          ? `no: ${p.cliff === null ? 'a cliff' : `a change of the hint by ${fixed(p.cliff, 1)} %`} gives another result`
          : 'yes',
      ]),
    },
  };
}

function latenessSummary(
  of: ReplayedAlgorithm,
  points: readonly ReplayPoint[],
): string {
  const unstable = points.filter((p) => p.isUnstable).length;
  const error =
    typeof of.median_error_percent === 'number'
      ? `The prediction is off by ${fixed(of.median_error_percent, 1)} % (median over ${of.stable_cells ?? points.length - unstable} stable delays).`
      : 'There is no stable delay away from cliffs to state an error of.';
  return `${of.name ?? of.algorithm}. ${error}${unstable > 0 ? ` ${unstable} unstable, drawn hollow: a look falls close to the release.` : ''}`;
}

function latenessSeries(points: readonly ReplayPoint[]): Series[] {
  const measured = (
    name: string,
    isUnstable: boolean,
    style: Partial<Series>,
  ): Series => ({
    name,
    interval: 'y',
    ...style,
    points: points.flatMap((p) =>
      p.isUnstable === isUnstable && p.measured !== null && p.measured > 0
        ? [
            {
              x: p.at_ms,
              y: p.measured,
              ...(p.low !== null && p.low > 0
                ? { low: p.low, high: p.high }
                : {}),
              tooltip: pointTooltip(p),
            },
          ]
        : [],
    ),
  });
  return [
    {
      name: 'predicted',
      line: 'straight' as const,
      dash: '4 3',
      width: 1.5,
      shape: 'square' as const,
      size: 3,
      colour: COLOURS.muted,
      points: points.flatMap((p) =>
        p.predicted !== null && p.predicted > 0
          ? [{ x: p.at_ms, y: p.predicted }]
          : [],
      ),
    },
    measured('measured', false, { size: 5, colour: seriesColour(0) }),
    measured('measured, unstable', true, {
      size: 5,
      isHollow: true,
      colour: COLOURS.worse,
    }),
  ].filter((series) => series.points.length > 0);
}

function pointTooltip(point: ReplayPoint): string {
  const parts = [`${point.at_ms} ms`];
  if (point.predicted !== null) parts.push(`predicted ${us(point.predicted)}`);
  if (point.measured !== null) parts.push(`measured ${us(point.measured)}`);
  if (point.error !== null) parts.push(`error ${fixed(point.error, 1)} %`);
  if (point.isUnstable) parts.push('unstable');
  return parts.join('\n');
}

/** Throughput for the CPU time spent, and how much of it went into spinning. */
function contentionPlans(of: ReplayedAlgorithm): (ChartPlan | null)[] {
  const cells = (of.contention ?? []).filter(
    (c): c is Having<ContentionCell, 'threads'> =>
      typeof c.threads === 'number',
  );
  if (cells.length === 0) return [];
  const last = cells.at(-1)!;
  return [
    {
      name: `Contention: ${of.algorithm}`,
      summary: `With ${last.threads} threads ${percent(last.spinning_share, 0)} of the CPU time is spun. It is measured, not predicted: the scheduler has a say.`,
      panels: () => contentionPanels(cells),
      table: {
        caption: `${of.algorithm} under contention`,
        columns: [
          ...numberColumns(
            'Threads',
            'Million per CPU second',
            'CPU time spinning',
            'Longest wait',
            'Parks per 1000',
          ),
        ],
        rows: cells.map((c) => [
          c.threads,
          typeof c.operations_per_cpu_s === 'number'
            ? (c.operations_per_cpu_s / 1e6).toFixed(2)
            : null,
          percent(c.spinning_share, 0),
          typeof c.longest_ms === 'number' ? seconds(c.longest_ms / 1e3) : null,
          typeof c.parks_per_1000 === 'number'
            ? fixed(c.parks_per_1000, 2)
            : null,
        ]),
      },
    },
  ];
}

function contentionPanels(
  cells: readonly Having<ContentionCell, 'threads'>[],
): Panel[] {
  const x: Axis = { title: 'threads', hasZero: true, ticks: wholeTicks };
  const points = (
    of: (cell: ContentionCell) => number | null | undefined,
    words: (value: number) => string,
  ): Series['points'] =>
    cells.flatMap((c) => {
      const y = of(c);
      return typeof y === 'number'
        ? [
            {
              x: c.threads,
              y,
              tooltip: `${count(c.threads, 'thread')}\n${words(y)}`,
            },
          ]
        : [];
    });
  return [
    {
      height: 150,
      x,
      y: {
        title: 'million operations per CPU second',
        hasZero: true,
      },
      series: [
        {
          line: 'straight',
          colour: seriesColour(0),
          points: points(
            (c) =>
              typeof c.operations_per_cpu_s === 'number'
                ? c.operations_per_cpu_s / 1e6
                : null,
            (y) => `${fixed(y, 2)} million operations per CPU second`,
          ),
        },
      ],
    },
    {
      height: 90,
      x,
      y: {
        title: 'share of CPU time spent spinning',
        ends: [0, 1.05],
        label: (share) => percent(share, 0),
      },
      series: [
        {
          line: 'straight',
          dash: '6 4',
          shape: 'triangle',
          isHollow: true,
          colour: seriesColour(1),
          points: points(
            (c) => c.spinning_share,
            (y) => `${percent(y, 0)} of the CPU time spinning`,
          ),
        },
      ],
    },
  ];
}

function method(record: SpinReplayRecord): HTMLElement {
  const { hint } = record;
  const ns = (value: number | null | undefined): string | null =>
    typeof value === 'number' ? quantity(value, 'ns') : null;
  const algorithms = tableElement({
    caption: 'Algorithms that were run',
    columns: [
      { name: 'Algorithm' },
      { name: 'Of' },
      ...numberColumns('Hints before it ends', 'Hints without a look'),
      { name: 'Then' },
    ],
    rows: (record.algorithms ?? []).map((a) => [
      a.algorithm,
      a.name,
      a.total_hints?.toLocaleString('en-US'),
      a.blind_gap_hints?.toLocaleString('en-US'),
      a.ends,
    ]),
  });
  return h(
    'div',
    {},
    facts([
      ['Experiment', record.experiment],
      ['Chip', record.chip ?? 'this one'],
      [
        'Hint',
        ns(hint?.wanted_ns)
          ? `${ns(hint?.wanted_ns)}${hint?.made ? `, ${hint.made}` : ''}; achieved ${ns(hint?.achieved_ns) ?? 'unknown'}; own ${ns(hint?.own_ns) ?? 'unknown'}`
          : null,
      ],
      ['CPUs assumed', record.cpus_assumed],
      [
        'Lock held for',
        typeof record.hold_ms === 'number' ? `${record.hold_ms} ms` : null,
      ],
      ['Wake-up', ns(record.wake_ns)],
      [
        'Items',
        typeof record.items === 'number'
          ? `${record.items}, ${record.repeats ?? 1} times`
          : null,
      ],
      ['Priority', record.realtime ? 'real-time' : 'usual'],
      ...hostFacts(record.host),
    ]),
    algorithms,
  );
}
