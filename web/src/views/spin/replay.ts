// A replay: predictions beside measurements, and the effect of contention.

import { type ChartPlan, chart } from '../../chart';
import { h } from '../../dom';
import { count, fixed, percent, quantity, seconds, span } from '../../format';
import {
  type Axis,
  COLOURS,
  type Panel,
  type Point,
  type Series,
  seriesColour,
} from '../../plot';
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
import { type ReplayPoint, firstName, toReplayPoints } from './shape';
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
  const { answer } = replay;
  const said = [...(replay.conclusions ?? []), ...(replay.notes ?? [])];
  return stack('article', '', [
    h('p.verdict', answer?.sentence ?? ''),
    adviceLine(answer?.advice),
    ...plots,
    h(
      'details',
      h('summary', 'How it was measured'),
      ...said
        .filter((one) => one !== answer?.sentence)
        .map((one) => h('p', one)),
      ...methodParts(replay),
    ),
  ]);
}

const formatMicroseconds = (value: number): string => seconds(value * 1e-6);

const formatMilliseconds = (value: number): string =>
  `${Number(value.toFixed(3))} ms`;

/** The lateness of each algorithm at each delay, a row each. */
function latenessPlan(record: SpinReplayRecord): ChartPlan | null {
  const known = (record.algorithms ?? [])
    .map((of) => ({ of, points: toReplayPoints(of, record.experiment) }))
    .filter(({ points }) => points.flatMap(latenesses).length > 0);
  if (known.length === 0) return null;
  const rows = known.flatMap(({ of, points }) =>
    points.map((point) => ({ name: firstName(of), point })),
  );
  const all = rows.map(({ point }) => point);
  const values = all.flatMap(latenesses);
  const isHandoff = record.experiment === 'handoff';
  const hasQuartiles = all.some((p) => p.low !== null);
  return {
    name: 'Lateness after the release',
    summary: `${isHandoff ? 'By how long the lock is held' : 'Delay: the wait begins this long after the lock is taken'}${hasQuartiles ? '; the lines are quartiles' : ''}.`,
    panel: {
      height: 26 * rows.length,
      x: {
        title: 'from release to acquisition',
        type: Math.max(...values) > 5 * Math.min(...values) ? 'log' : 'linear',
        label: formatMicroseconds,
      },
      y: {
        title: isHandoff ? 'Held' : 'Delay',
        names: rows.map(
          ({ name, point }) =>
            (known.length > 1 ? `${name}, ` : '') +
            formatMilliseconds(point.at_ms),
        ),
        words: all.map(({ measured, runs, isThin }) =>
          measured === null
            ? 'not measured'
            : formatMicroseconds(measured) + (isThin ? `, n = ${runs}` : ''),
        ),
      },
      series: latenessSeries(rows),
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

const latenesses = (p: ReplayPoint): number[] =>
  [p.predicted, p.measured, p.low, p.high].filter(positive);

function latenessSeries(
  rows: readonly { name: string; point: ReplayPoint }[],
): Series[] {
  const measured = (isUnstable: boolean): Point[] =>
    filterMap(rows, ({ name, point: p }, y) =>
      p.isUnstable === isUnstable && positive(p.measured)
        ? {
            x: p.measured,
            y,
            ...(positive(p.low) ? { low: p.low, high: p.high } : {}),
            tooltip: pointTooltip(`${name}, `, p),
          }
        : null,
    );
  const look = { interval: 'x', size: 4, colour: seriesColour(0) } as const;
  return [
    {
      name: 'predicted',
      shape: 'square' as const,
      isHollow: true,
      size: 6,
      colour: COLOURS.muted,
      points: filterMap(rows, ({ name, point }, y) =>
        positive(point.predicted)
          ? { x: point.predicted, y, tooltip: pointTooltip(`${name}, `, point) }
          : null,
      ),
    },
    { ...look, name: 'measured', points: measured(false) },
    {
      ...look,
      name: 'measured, prediction uncertain',
      isHollow: true,
      points: measured(true),
    },
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
