// Charts of a machine's memory: the cache ladder, bandwidth, latency under
// load, and a pair's latency over time.

import type { ChartPlan } from '../../chart';
import { visible } from '../../dom';
import {
  bytes,
  digits,
  percent,
  quantity,
  seconds,
  withSpan,
} from '../../format';
import type { Axis, Panel, Point, Series } from '../../plot';
import { seriesLook, seriesColour } from '../../plot';
import { numberColumns } from '../../table';
import type { DriftPair, Measure, Measured } from './record';
import { formatSize } from './shape';
import { filterMap } from '../../lists';

export const formatMeasure = (
  { value, low, high }: Measure,
  unit: string,
): string => withSpan(value, low, high, (v) => quantity(v, unit))!;

const levelName = (level: number | null): string =>
  level === null ? 'memory' : `L${level}`;

/** Load latency over the working set, with the reported sizes of the caches. */
export function ladderPlan(ladder: NonNullable<Measured['ladder']>): ChartPlan {
  const steps = ladder.plateaus.map(
    (p) =>
      `${levelName(p.level)} ${quantity(p.ns, 'ns')}${p.effective === null ? '' : ` to ${bytes(p.effective)}`}`,
  );
  const hint = ladder.hint ? ` The last cache looks ${ladder.hint}.` : '';
  return {
    name: 'Cache ladder',
    summary: `Time of a load on CPU ${ladder.cpu ?? '–'} as its working set grows${steps.length > 0 ? `: ${steps.join(', ')}` : ''}.${hint}`,
    panel: ladderPanel(ladder),
    table: {
      caption: 'Load latency by working set',
      columns: [...numberColumns('Working set', 'One load', 'From', 'To')],
      rows: ladder.points.map((p) => [
        bytes(p.bytes),
        quantity(p.ns.value, 'ns'),
        quantity(p.ns.low, 'ns'),
        quantity(p.ns.high, 'ns'),
      ]),
    },
  };
}

/** Powers of two, as caches are sized. */
function sizeTicks(low: number, high: number, most: number): number[] {
  const first = Math.ceil(Math.log2(low) - 1e-9);
  const last = Math.floor(Math.log2(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  return Array.from(
    { length: Math.floor((last - first) / step) + 1 },
    (_, at) => 2 ** (first + at * step),
  );
}

const nsAxis = (title: string): Axis => ({
  title,
  label: (ns) => quantity(ns, 'ns'),
});

function ladderPanel(ladder: NonNullable<Measured['ladder']>): Panel {
  const first = ladder.points[0]!.bytes;
  const last = ladder.points[ladder.points.length - 1]!.bytes;
  let from = first;
  const plateaus = ladder.plateaus.flatMap((p): Point[] => {
    const [start, end] = [from, Math.max(from, p.effective ?? last)];
    from = end;
    return [
      { x: start, y: p.ns },
      { x: end, y: p.ns },
      { x: end, y: null },
    ];
  });
  return {
    height: 240,
    x: {
      title: 'working set',
      type: 'log',
      ends: [first, last],
      ticks: sizeTicks,
      label: formatSize,
    },
    y: { ...nsAxis('time of a load'), type: 'log' },
    rules: filterMap(ladder.plateaus, (p) =>
      p.reported === null
        ? null
        : {
            x: p.reported,
            dash: '2 3',
            label: `${levelName(p.level)} reported ${formatSize(p.reported)}`,
          },
    ),
    series: [
      {
        name: 'plateau',
        line: 'straight',
        dash: '6 4',
        size: 0,
        colour: seriesColour(1),
        points: plateaus,
      },
      {
        name: 'load',
        line: 'straight',
        interval: 'y',
        thickness: 1.5,
        size: 3,
        colour: seriesColour(0),
        points: ladder.points.map((p) => ({
          x: p.bytes,
          y: p.ns.value,
          low: p.ns.low,
          high: p.ns.high,
          tooltip: `${bytes(p.bytes)}: ${formatMeasure(p.ns, 'ns')}`,
        })),
      },
    ],
  };
}

const describeCpus = (
  row: Measured['bandwidth'][number],
  most = 18,
): string => {
  const cpus =
    row.cpus.length > most ? `${row.cpus.slice(0, most - 1)}…` : row.cpus;
  return `CPUs ${visible(cpus)}${row.node === null ? '' : `, node ${row.node}`}`;
};

/** Bandwidth of memory by the CPUs that use it. */
export function bandwidthPlan(rows: Measured['bandwidth']): ChartPlan {
  const best = rows.reduce((a, b) => (b.gbPerS.value > a.gbPerS.value ? b : a));
  const places = [...new Set(rows.map((row) => describeCpus(row)))];
  const streams = [...new Set(rows.map((row) => row.stream))];
  return {
    name: 'Bandwidth of memory',
    summary: `The most is ${digits(best.gbPerS.value)} GB/s (${best.stream}, CPUs ${best.cpus}); with 95 % intervals.`,
    panel: {
      height: 28 * places.length,
      x: { title: 'GB/s', hasZero: true },
      y: { title: 'CPUs that use it', names: places },
      series: streams.map((stream, at): Series => ({
        name: stream,
        ...seriesLook(at),
        interval: 'x',
        size: 5,
        points: rows
          .filter((row) => row.stream === stream)
          .map((row) => ({
            x: row.gbPerS.value,
            y: places.indexOf(describeCpus(row)),
            low: row.gbPerS.low,
            high: row.gbPerS.high,
            tooltip: `${stream}, ${describeCpus(row)}: ${digits(row.gbPerS.value)} GB/s`,
          })),
      })),
    },
    table: {
      caption: 'Bandwidth, GB/s',
      columns: [
        'CPUs',
        'Memory',
        'Stream',
        ...numberColumns('GB/s', 'From', 'To'),
      ],
      rows: rows.map((row) => [
        row.cpus,
        row.node === null ? 'own' : `node ${row.node}`,
        row.stream,
        digits(row.gbPerS.value),
        row.gbPerS.low === null ? null : digits(row.gbPerS.low),
        row.gbPerS.high === null ? null : digits(row.gbPerS.high),
      ]),
    },
  };
}

/** Latency of a load while others use the memory. */
export function loadedPlan(rows: Measured['loaded']): ChartPlan {
  const sorted = [...rows].sort((a, b) => a.background - b.background);
  const [least, most] = [sorted[0]!, sorted[sorted.length - 1]!];
  return {
    name: 'Latency of memory under load',
    summary: `A load takes ${quantity(least.ns.value, 'ns')} beside ${digits(least.background)} GB/s of others and ${quantity(most.ns.value, 'ns')} beside ${digits(most.background)} GB/s.`,
    panel: {
      height: 180,
      x: { title: 'GB/s of others' },
      y: { ...nsAxis('time of a load'), hasZero: true },
      series: [
        {
          interval: 'y',
          thickness: 1.5,
          colour: seriesColour(0),
          points: sorted.map((row) => ({
            x: row.background,
            y: row.ns.value,
            low: row.ns.low,
            high: row.ns.high,
            tooltip: describeLoaded(row),
          })),
        },
      ],
    },
    table: {
      caption: 'Latency of a load while others use the memory',
      columns: [
        { name: 'CPU', isNumber: true },
        'Others',
        ...numberColumns('Their load, GB/s', 'One load'),
      ],
      rows: sorted.map((row) => [
        row.cpu,
        row.loaders || 'none',
        digits(row.background),
        formatMeasure(row.ns, 'ns'),
      ]),
    },
  };
}

const describeLoaded = (row: Measured['loaded'][number]): string =>
  `CPU ${row.cpu ?? '–'} beside ${visible(row.loaders || 'none')}: ${formatMeasure(row.ns, 'ns')}`;

const STATE_WORDS: Readonly<Record<string, string>> = {
  smt: 'share a core',
  llc: 'share a last-level cache',
  package: 'share a package',
  stacked: 'take turns on one hardware thread',
  other: 'apart',
  remote: 'apart',
};

const describeState = (kind: string): string =>
  STATE_WORDS[kind] ?? visible(kind);

/** A pair's latency over the time that it was watched. */
export function driftPlan(pair: DriftPair): ChartPlan {
  const states = pair.states.map(
    (s) =>
      `${describeState(s.kind ?? '')} ${percent(s.share, 0)} of the time (${quantity(s.latency_ns, 'ns')})`,
  );
  return {
    name: `CPUs ${pair.a} and ${pair.b} over time`,
    summary: `${states.join(', ') || 'No distinct states were found'}.`,
    panel: {
      height: 180,
      x: { title: 'time', label: (s) => seconds(s) },
      y: { ...nsAxis('latency'), type: 'log' },
      series: pair.states.map((state, at): Series => ({
        name: describeState(state.kind ?? ''),
        ...seriesLook(at),
        size: 3,
        points: pair.samples
          .filter(({ state, ns }) => state === at && ns > 0)
          .map(({ second, ns }) => ({
            x: second,
            y: ns,
            tooltip: `${digits(second)} s: ${quantity(ns, 'ns')}`,
          })),
      })),
    },
    table: {
      caption: `States of CPUs ${pair.a} and ${pair.b}`,
      columns: [
        'State',
        ...numberColumns('Latency', 'Share', 'Visits', 'Median stay'),
      ],
      rows: pair.states.map((s) => [
        describeState(s.kind ?? ''),
        quantity(s.latency_ns, 'ns'),
        percent(s.share, 0),
        s.visits,
        seconds(s.median_dwell_s),
      ]),
    },
  };
}
