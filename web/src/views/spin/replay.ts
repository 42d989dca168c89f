// A replay: predictions beside measurements, and the effect of contention.

import { type ChartPlan, chart } from '../../chart';
import { h } from '../../dom';
import { count, fixed, percent, quantity, seconds, span } from '../../format';
import { type Axis, type Panel, type Series, seriesColour } from '../../plot';
import type {
  ContentionCell,
  Having,
  ReplayedAlgorithm,
  SpinReplayRecord,
} from '../../records';
import { adviceLine } from '../../method';
import { wholeTicks } from '../../scales';
import type { AnyRecord } from '../../source';
import { tableElement, numberColumns } from '../../table';
import { type Page, type View, stack } from '../../view';
import { facts, hostFacts } from '../../words';
import {
  describeMissing,
  type ReplayPoint,
  toReplayPoints,
  replaySentence,
} from './shape';
import { filterMap } from '../../lists';
import { mapNumber, positive } from '../../numbers';

/** Draws a `pinwise.spin-replay/1`. */
export function spinReplayView(record: AnyRecord, _page: Page): View {
  const known = record as SpinReplayRecord;
  const replay = {
    ...known,
    algorithms: (known.algorithms ?? []).filter(
      (one) => typeof one.algorithm === 'string',
    ),
  };
  const plots = [latenessPlan(replay), contentionPlan(replay)]
    .filter((plan) => plan !== null)
    .map(chart);
  const verdict = replaySentence(replay);
  const missing = describeMissing(replay);
  const others = (replay.conclusions ?? []).filter((one) => one !== verdict);
  return stack('article', '', [
    h('p.verdict', verdict),
    adviceLine(
      missing || verdict.startsWith('Not measured')
        ? `Repeat them with less disturbance: pinwise spin replay${replay.experiment ? ` --experiment ${replay.experiment}` : ''} --realtime.`
        : 'Get settings that bound the spin on this machine: pinwise spin advise.',
    ),
    missing && h('p', missing),
    ...plots,
    h(
      'details',
      h('summary', 'How it was measured'),
      ...[...others, ...(replay.notes ?? [])].map((one) => h('p', one)),
      ...methodParts(replay),
    ),
  ]);
}

const formatMicroseconds = (value: number): string => seconds(value * 1e-6);

const formatMilliseconds = (value: number): string =>
  `${Number(value.toFixed(3))} ms`;

/** The lateness of each algorithm at each delay, in one chart. */
function latenessPlan(record: SpinReplayRecord): ChartPlan | null {
  const all = (record.algorithms ?? []).map((of) => ({
    of,
    points: toReplayPoints(of, record.experiment),
  }));
  const latenesses = ({ points }: (typeof all)[0]): number[] =>
    points.flatMap((p) =>
      [p.predicted, p.measured, p.low, p.high].filter(positive),
    );
  const known = all.filter((one) => latenesses(one).length > 0);
  if (known.length === 0) return null;
  const values = known.flatMap(latenesses);
  const isLog = Math.max(...values) > 5 * Math.min(...values);
  const isHandoff = record.experiment === 'handoff';
  const isWhole = known.every(({ points }) =>
    points.every((p) => Number.isInteger(p.at_ms)),
  );
  const isUnstable = known.some(({ points }) =>
    points.some((p) => p.isUnstable),
  );
  const hasQuartiles = known.some(({ points }) =>
    points.some((p) => p.low !== null),
  );
  const isThin = known.some(({ points }) =>
    points.some((p) => p.isThin && p.measured !== null),
  );
  return {
    name: 'How late the waiter gets the free lock',
    summary: `Dots are measured${hasQuartiles ? ', with quartiles' : ''}${isThin ? ', n beside them where runs are too few' : ''}; the dashed line is predicted${isUnstable ? '; hollow where the prediction is uncertain' : ''}.`,
    panel: {
      height: 240,
      x: {
        title: isHandoff ? 'lock held for' : 'waiter comes after',
        label: formatMilliseconds,
        ...(isWhole ? { ticks: wholeTicks } : {}),
      },
      y: {
        title: 'lateness',
        type: isLog ? 'log' : 'linear',
        label: formatMicroseconds,
      },
      series: known.flatMap(({ of, points }, at) =>
        latenessSeries(
          known.length > 1 ? `${of.algorithm}, ` : '',
          points,
          seriesColour(at),
        ),
      ),
    },
    table: {
      caption: 'Lateness predicted and measured',
      columns: [
        'Algorithm',
        { name: isHandoff ? 'Held' : 'Delay', isNumber: true },
        ...numberColumns(
          'Predicted',
          'Measured',
          'Valid runs',
          ...(hasQuartiles ? ['Quartiles'] : []),
          'Error',
        ),
        'Prediction',
      ],
      rows: known.flatMap(({ of, points }) =>
        points.map((p) => [
          of.algorithm ?? '',
          formatMilliseconds(p.at_ms),
          mapNumber(p.predicted, formatMicroseconds),
          mapNumber(p.measured, formatMicroseconds),
          p.runs,
          ...(hasQuartiles ? [span(p.low, p.high, formatMicroseconds)] : []),
          p.error === null
            ? null
            : `${p.error > 0 ? '+' : '−'}${fixed(Math.abs(p.error), 1)} %`,
          p.isUnstable
            ? `uncertain: another result if a PAUSE takes ${p.cliff === null ? 'slightly' : `${fixed(p.cliff, 1)} %`} more or less`
            : '',
        ]),
      ),
    },
  };
}

function latenessSeries(
  name: string,
  points: readonly ReplayPoint[],
  colour: string,
): Series[] {
  const measured = (isUnstable: boolean, style: Partial<Series>): Series => ({
    interval: 'y',
    size: 5,
    colour,
    ...style,
    points: filterMap(points, (p) =>
      p.isUnstable === isUnstable && p.measured !== null && p.measured > 0
        ? {
            x: p.at_ms,
            y: p.measured,
            ...(p.low !== null && p.low > 0
              ? { low: p.low, high: p.high }
              : {}),
            ...(p.isThin ? { sign: `n = ${p.runs}` } : {}),
            tooltip: pointTooltip(name, p),
          }
        : null,
    ),
  });
  return [
    {
      name: `${name}predicted`,
      line: 'straight' as const,
      dash: '4 3',
      width: 1.5,
      shape: 'square' as const,
      size: 3,
      colour,
      points: filterMap(points, (p) =>
        p.predicted !== null && p.predicted > 0
          ? { x: p.at_ms, y: p.predicted, tooltip: pointTooltip(name, p) }
          : null,
      ),
    },
    measured(false, { name: `${name}measured` }),
    measured(true, { name: `${name}measured, uncertain`, isHollow: true }),
  ].filter((series) => series.points.length > 0);
}

function pointTooltip(name: string, point: ReplayPoint): string {
  const parts = [`${name}${formatMilliseconds(point.at_ms)}`];
  if (point.predicted !== null)
    parts.push(`predicted ${formatMicroseconds(point.predicted)}`);
  if (point.measured !== null)
    parts.push(
      `measured ${formatMicroseconds(point.measured)}${point.runs === null ? '' : ` in ${count(point.runs, 'run')}`}`,
    );
  if (point.error !== null) parts.push(`error ${fixed(point.error, 1)} %`);
  if (point.isUnstable) parts.push('prediction uncertain');
  return parts.join('\n');
}

type Contended = Having<ContentionCell, 'threads'>;

const contentionCells = (of: ReplayedAlgorithm): Contended[] =>
  (of.contention ?? []).filter(
    (c): c is Contended => typeof c.threads === 'number',
  );

/** Throughput per CPU time, and the share of CPU time spent spinning. */
function contentionPlan(record: SpinReplayRecord): ChartPlan | null {
  const all = (record.algorithms ?? []).map((of) => ({
    name: of.algorithm ?? '',
    cells: contentionCells(of),
  }));
  const known = all.filter(({ cells }) => cells.length > 0);
  if (known.length === 0) return null;
  return {
    name: 'Threads that contend for one lock',
    summary: 'Throughput, and the share of CPU time that is spent spinning.',
    panels: () => contentionPanels(known),
    table: {
      caption: 'Under contention',
      columns: [
        'Algorithm',
        ...numberColumns(
          'Threads',
          'Million per CPU second',
          'CPU time spinning',
          'Longest wait',
          'Parks per 1000',
        ),
      ],
      rows: known.flatMap(({ name, cells }) =>
        cells.map((c) => [
          name,
          c.threads,
          mapNumber(c.operations_per_cpu_s, (operationsPerCpuS) =>
            (operationsPerCpuS / 1e6).toFixed(2),
          ),
          percent(c.spinning_share, 0),
          mapNumber(c.longest_ms, (longestMs) => seconds(longestMs / 1e3)),
          mapNumber(c.parks_per_1000, (parksPer1000) => fixed(parksPer1000, 2)),
        ]),
      ),
    },
  };
}

function contentionPanels(
  known: readonly { name: string; cells: readonly Contended[] }[],
): Panel[] {
  const x: Axis = { title: 'threads', ticks: wholeTicks };
  const series = (
    of: (cell: ContentionCell) => number | null | undefined,
    words: (value: number) => string,
    isNamed: boolean,
  ): Series[] =>
    known.map(({ name, cells }, at) => ({
      line: 'straight',
      colour: seriesColour(at),
      ...(isNamed ? { name } : {}),
      points: filterMap(cells, (c) => {
        const y = of(c);
        return typeof y === 'number'
          ? {
              x: c.threads,
              y,
              tooltip: `${name}\n${count(c.threads, 'thread')}\n${words(y)}`,
            }
          : null;
      }),
    }));
  return [
    {
      height: 150,
      x,
      y: { title: 'million operations per CPU second', hasZero: true },
      series: series(
        (c) =>
          mapNumber(
            c.operations_per_cpu_s,
            (operationsPerCpuS) => operationsPerCpuS / 1e6,
          ),
        (y) => `${fixed(y, 2)} million operations per CPU second`,
        true,
      ),
    },
    {
      height: 90,
      x,
      y: {
        title: 'share of CPU time spent spinning',
        ends: [0, 1.05],
        label: (share) => percent(share, 0),
      },
      series: series(
        (c) => c.spinning_share,
        (y) => `${percent(y, 0)} of the CPU time spinning`,
        false,
      ),
    },
  ];
}

function methodParts(record: SpinReplayRecord): HTMLElement[] {
  const { hint } = record;
  const ns = (value: number | null | undefined): string | null =>
    mapNumber(value, (value) => quantity(value, 'ns'));
  const algorithms = tableElement({
    caption: 'Algorithms that were run',
    columns: [
      'Algorithm',
      'Of',
      ...numberColumns('Hints before it ends', 'Hints without a look'),
      'Then',
    ],
    rows: (record.algorithms ?? []).map((a) => [
      a.algorithm,
      a.name,
      a.total_hints?.toLocaleString('en-US'),
      a.blind_gap_hints?.toLocaleString('en-US'),
      a.ends,
    ]),
  });
  return [
    facts({
      Experiment: record.experiment,
      Chip: record.chip ?? 'this one',
      Hint: ns(hint?.wanted_ns)
        ? `${ns(hint?.wanted_ns)}${hint?.made ? `, ${hint.made}` : ''}; achieved ${ns(hint?.achieved_ns) ?? 'unknown'}; own ${ns(hint?.own_ns) ?? 'unknown'}`
        : null,
      'CPUs assumed': record.cpus_assumed,
      'Lock held for': mapNumber(record.hold_ms, (holdMs) => `${holdMs} ms`),
      'Wake-up': ns(record.wake_ns),
      Items: mapNumber(
        record.items,
        (items) => `${items} × ${record.repeats ?? 1}`,
      ),
      Priority: record.realtime ? 'real-time' : 'usual',
      ...hostFacts(record.host),
    }),
    algorithms,
  ];
}
