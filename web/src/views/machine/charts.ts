// Charts of a machine's memory: the cache ladder, bandwidth, latency under
// load, and a pair's latency over time.

import type { EChartsCoreOption } from 'echarts/core';

import type { ChartPlan } from '../../chart';
import { axis } from '../../chart';
import { visible } from '../../dom';
import { bytes, digits, percent, quantity, seconds } from '../../format';
import type { Theme } from '../../theme';
import type { DriftPair, Measure, Measured } from './record';
import { sizeWords } from './shape';

/** Marks that distinguish series without their colours. */
export const SYMBOLS = ['circle', 'rect', 'triangle', 'diamond'] as const;

type Drawn = {
  coord(point: number[]): number[];
  style(): Record<string, unknown>;
  value(at: number): number;
};

/** Lines from low to high ends, over points `[x, y, low, high]`; `across` where values lie on the x axis. */
export function whiskers(
  data: readonly (readonly number[])[],
  colour: string,
  across: boolean,
): Record<string, unknown> {
  return {
    type: 'custom',
    silent: true,
    tooltip: { show: false },
    data,
    encode: across ? { x: [0, 2, 3], y: 1 } : { x: 0, y: [1, 2, 3] },
    renderItem: (_: unknown, api: Drawn) => {
      const end = (at: number): number[] =>
        api.coord(
          across
            ? [api.value(at), api.value(1)]
            : [api.value(0), api.value(at)],
        );
      const [low, high] = [end(2), end(3)];
      return {
        type: 'line',
        shape: { x1: low[0], y1: low[1], x2: high[0], y2: high[1] },
        style: { stroke: colour, lineWidth: 1.5 },
      };
    },
  };
}

const intervalWords = (measure: Measure, unit: string): string =>
  measure.low === null || measure.high === null
    ? quantity(measure.value, unit)
    : `${quantity(measure.value, unit)} (${quantity(measure.low, unit)} to ${quantity(measure.high, unit)})`;

const ends = (measure: Measure): [number, number] => [
  measure.low ?? measure.value,
  measure.high ?? measure.value,
];

const levelName = (level: number | null): string =>
  level === null ? 'memory' : `L${level}`;

/** Load latency over the working set, with what the caches are reported to hold. */
export function ladderPlan(ladder: NonNullable<Measured['ladder']>): ChartPlan {
  const steps = ladder.plateaus.map(
    (p) =>
      `${levelName(p.level)} ${quantity(p.ns, 'ns')}${p.effective === null ? '' : ` to ${bytes(p.effective)}`}`,
  );
  const hint = ladder.hint ? ` The last cache looks ${ladder.hint}.` : '';
  return {
    name: 'Cache ladder',
    summary: `Time of a load on CPU ${ladder.cpu ?? '–'} as its working set grows${steps.length > 0 ? `: ${steps.join(', ')}` : ''}.${visible(hint)}`,
    height: 320,
    option: (colours) => ladderOption(ladder, colours),
    table: {
      caption: 'Load latency by working set',
      columns: [
        { name: 'Working set', isNumber: true },
        { name: 'One load', isNumber: true },
        { name: 'From', isNumber: true },
        { name: 'To', isNumber: true },
      ],
      rows: ladder.points.map((p) => [
        bytes(p.bytes),
        quantity(p.ns.value, 'ns'),
        quantity(p.ns.low, 'ns'),
        quantity(p.ns.high, 'ns'),
      ]),
    },
  };
}

function ladderOption(
  ladder: NonNullable<Measured['ladder']>,
  colours: Theme,
): EChartsCoreOption {
  const first = ladder.points[0]!.bytes;
  const last = ladder.points[ladder.points.length - 1]!.bytes;
  let from = first;
  const plateaus = ladder.plateaus.flatMap((p) => {
    const to = p.effective ?? last;
    const line = [
      [from, p.ns],
      [Math.max(from, to), p.ns],
      [null, null],
    ];
    from = Math.max(from, to);
    return line;
  });
  const reported = ladder.plateaus.flatMap((p) =>
    p.reported === null
      ? []
      : [
          {
            xAxis: p.reported,
            name: `${levelName(p.level)} reported ${sizeWords(p.reported)}`,
          },
        ],
  );
  return {
    grid: {
      left: 8,
      right: 20,
      top: 34,
      bottom: 24,
      outerBoundsMode: 'same',
      outerBoundsContain: 'axisLabel',
    },
    tooltip: {
      renderMode: 'richText',
      confine: true,
      trigger: 'axis',
      backgroundColor: colours.background,
      borderColor: colours.line,
      textStyle: { color: colours.text, fontSize: 12 },
      formatter: (points: { value: number[] }[]) =>
        points[0]
          ? `${bytes(points[0].value[0])}: ${quantity(points[0].value[1], 'ns')}`
          : '',
    },
    legend: {
      top: 0,
      textStyle: { color: colours.text },
      data: ['load', 'plateau'],
    },
    xAxis: axis(colours, {
      type: 'log',
      logBase: 2,
      splitNumber: 8,
      min: first,
      max: last,
      name: 'working set',
      nameLocation: 'middle',
      nameGap: 22,
      axisLabel: {
        color: colours.muted,
        hideOverlap: true,
        formatter: sizeWords,
      },
    }),
    yAxis: axis(colours, {
      type: 'log',
      name: 'ns a load',
      nameLocation: 'end',
      nameTextStyle: { color: colours.muted, align: 'left' },
    }),
    series: [
      whiskers(
        ladder.points.map((p) => [p.bytes, p.ns.value, ...ends(p.ns)]),
        colours.series[0]!,
        false,
      ),
      {
        name: 'load',
        type: 'line',
        symbolSize: 5,
        data: ladder.points.map((p) => [p.bytes, p.ns.value]),
        color: colours.series[0],
        markLine: {
          silent: true,
          symbol: 'none',
          lineStyle: { color: colours.muted, type: 'dotted' },
          label: {
            color: colours.muted,
            formatter: '{b}',
            position: 'insideStartTop',
          },
          data: reported,
        },
      },
      {
        name: 'plateau',
        type: 'line',
        symbol: 'none',
        data: plateaus,
        color: colours.series[1],
        lineStyle: { width: 2, type: 'dashed' },
        tooltip: { show: false },
      },
    ],
  };
}

const whereOf = (row: Measured['bandwidth'][number], most = 18): string => {
  const cpus =
    row.cpus.length > most ? `${row.cpus.slice(0, most - 1)}…` : row.cpus;
  return `CPUs ${visible(cpus)}${row.node === null ? '' : `, node ${row.node}`}`;
};

/** Bandwidth of memory by the CPUs that ask for it. */
export function bandwidthPlan(rows: Measured['bandwidth']): ChartPlan {
  const best = rows.reduce((a, b) => (b.gbPerS.value > a.gbPerS.value ? b : a));
  const places = [...new Set(rows.map((row) => whereOf(row)))];
  const streams = [...new Set(rows.map((row) => row.stream))];
  return {
    name: 'Bandwidth of memory',
    summary: `The most is ${digits(best.gbPerS.value)} GB/s (${visible(best.stream)}, CPUs ${visible(best.cpus)}); with 95 % intervals.`,
    height: 70 + 26 * places.length,
    option: (colours) => ({
      grid: {
        left: 8,
        right: 20,
        top: 34,
        bottom: 24,
        outerBoundsMode: 'same',
        outerBoundsContain: 'axisLabel',
      },
      legend: {
        top: 0,
        textStyle: { color: colours.text },
        data: streams.map(visible),
      },
      xAxis: axis(colours, {
        type: 'value',
        min: 0,
        name: 'GB/s',
        nameLocation: 'middle',
        nameGap: 22,
      }),
      yAxis: axis(colours, {
        type: 'category',
        inverse: true,
        data: places,
        axisLabel: { color: colours.muted, width: 150, overflow: 'truncate' },
      }),
      series: streams.flatMap((stream, at) => {
        const own = rows.filter((row) => row.stream === stream);
        const colour = colours.series[at % colours.series.length]!;
        const place = (row: Measured['bandwidth'][number]): number =>
          places.indexOf(whereOf(row));
        return [
          whiskers(
            own.map((row) => [
              row.gbPerS.value,
              place(row),
              ...ends(row.gbPerS),
            ]),
            colour,
            true,
          ),
          {
            name: visible(stream),
            type: 'scatter',
            symbol: SYMBOLS[at % SYMBOLS.length],
            symbolSize: 11,
            color: colour,
            data: own.map((row) => [row.gbPerS.value, place(row)]),
            tooltip: {
              formatter: (point: { dataIndex: number }) =>
                `${visible(stream)}, ${whereOf(own[point.dataIndex]!)}: ${digits(own[point.dataIndex]!.gbPerS.value)} GB/s`,
            },
          },
        ];
      }),
    }),
    table: {
      caption: 'Bandwidth, GB/s',
      columns: [
        { name: 'CPUs' },
        { name: 'Memory' },
        { name: 'Stream' },
        { name: 'GB/s', isNumber: true },
        { name: 'From', isNumber: true },
        { name: 'To', isNumber: true },
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
    height: 260,
    option: (colours) => ({
      grid: {
        left: 8,
        right: 20,
        top: 30,
        bottom: 24,
        outerBoundsMode: 'same',
        outerBoundsContain: 'axisLabel',
      },
      xAxis: axis(colours, {
        type: 'value',
        name: 'GB/s of others',
        nameLocation: 'middle',
        nameGap: 22,
      }),
      yAxis: axis(colours, {
        type: 'value',
        min: 0,
        name: 'ns a load',
        nameTextStyle: { color: colours.muted, align: 'left' },
      }),
      series: [
        whiskers(
          sorted.map((row) => [row.background, row.ns.value, ...ends(row.ns)]),
          colours.series[0]!,
          false,
        ),
        {
          type: 'scatter',
          symbolSize: 9,
          color: colours.series[0],
          data: sorted.map((row) => [row.background, row.ns.value]),
          tooltip: {
            formatter: (point: { dataIndex: number }) =>
              loadedWords(sorted[point.dataIndex]!),
          },
        },
      ],
    }),
    table: {
      caption: 'Latency of a load while others use the memory',
      columns: [
        { name: 'CPU', isNumber: true },
        { name: 'Others' },
        { name: 'Their load, GB/s', isNumber: true },
        { name: 'One load', isNumber: true },
      ],
      rows: sorted.map((row) => [
        row.cpu,
        row.loaders || 'none',
        digits(row.background),
        intervalWords(row.ns, 'ns'),
      ]),
    },
  };
}

const loadedWords = (row: Measured['loaded'][number]): string =>
  `CPU ${row.cpu ?? '–'} beside ${visible(row.loaders || 'none')}: ${intervalWords(row.ns, 'ns')}`;

const STATE_WORDS: Readonly<Record<string, string>> = {
  smt: 'share a core',
  llc: 'share a last-level cache',
  package: 'share a package',
  stacked: 'take turns on one hardware thread',
  other: 'apart',
  remote: 'apart',
};

export const stateWords = (kind: string): string =>
  STATE_WORDS[kind] ?? visible(kind);

/** A pair's latency over the time that it was watched. */
export function driftPlan(pair: DriftPair): ChartPlan {
  const states = pair.states.map(
    (s) =>
      `${stateWords(s.kind)} ${percent(s.share, 0)} of the time (${quantity(s.latencyNs, 'ns')})`,
  );
  return {
    name: `CPUs ${pair.a} and ${pair.b} over time`,
    summary: `${states.join(', ') || 'No separate states'}.`,
    height: 240,
    option: (colours) => ({
      grid: {
        left: 8,
        right: 20,
        top: 34,
        bottom: 24,
        outerBoundsMode: 'same',
        outerBoundsContain: 'axisLabel',
      },
      legend: {
        top: 0,
        textStyle: { color: colours.text },
        data: pair.states.map((s) => stateWords(s.kind)),
      },
      xAxis: axis(colours, {
        type: 'value',
        name: 'seconds',
        nameLocation: 'middle',
        nameGap: 22,
      }),
      yAxis: axis(colours, {
        type: 'log',
        name: 'ns',
        nameTextStyle: { color: colours.muted, align: 'left' },
      }),
      series: pair.states.map((state, at) => ({
        name: stateWords(state.kind),
        type: 'scatter',
        symbol: SYMBOLS[at % SYMBOLS.length],
        symbolSize: 7,
        color: colours.series[at % colours.series.length],
        data: pair.samples
          .filter((sample) => sample[2] === at && sample[1] > 0)
          .map(([second, ns]) => [second, ns]),
        tooltip: {
          formatter: (point: { value: number[] }) =>
            `${digits(point.value[0]!)} s: ${quantity(point.value[1], 'ns')}`,
        },
      })),
    }),
    table: {
      caption: `States of CPUs ${pair.a} and ${pair.b}`,
      columns: [
        { name: 'State' },
        { name: 'Latency', isNumber: true },
        { name: 'Share', isNumber: true },
        { name: 'Visits', isNumber: true },
        { name: 'Median stay', isNumber: true },
      ],
      rows: pair.states.map((s) => [
        stateWords(s.kind),
        quantity(s.latencyNs, 'ns'),
        percent(s.share, 0),
        s.visits,
        seconds(s.dwellS),
      ]),
    },
  };
}
