// A replay: what was predicted beside what was measured, and what contention did.

import type { ChartPlan } from '../../chart';
import { axis, chart, tooltip } from '../../chart';
import { h, visible } from '../../dom';
import { percent, quantity, seconds } from '../../format';
import { intervalSeries, look, marker } from '../../intervals';
import type {
  ContentionCell,
  Having,
  ReplayedAlgorithm,
  SpinReplayRecord,
} from '../../records';
import { ticksThatFit } from '../../rows';
import { decadeTicks } from '../../scales';
import type { AnyRecord } from '../../source';
import { tableElement } from '../../table';
import type { Theme } from '../../theme';
import type { Page, View } from '../../view';
import { stack } from '../../view';
import { facts, hostFacts, section } from '../../words';
import type { ReplayPoint } from './shape';
import { replayPoints } from './shape';

/** Draws a `pinwise.spin-replay/1`. */
export function spinReplayView(record: AnyRecord, _page: Page): View {
  const shown = record as SpinReplayRecord;
  const replay = {
    ...shown,
    algorithms: (shown.algorithms ?? []).filter(
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
  const values = points
    .flatMap((p) => [p.predicted, p.measured, p.low, p.high])
    .filter((v): v is number => v !== null && v > 0);
  if (values.length === 0) return null;
  const isHandoff = record.experiment === 'handoff';
  const [low, high] = [Math.min(...values) / 1.4, Math.max(...values) * 1.4];
  const unstable = points.filter((p) => p.isUnstable);
  return {
    name: `How late the waiter is: ${of.algorithm}`,
    summary: latenessSummary(of, points),
    height: 340,
    option: (colours) => ({
      tooltip: tooltip(colours, {
        trigger: 'item',
        formatter: (p: { value: number[] }) => {
          const point = points.find((one) => one.at_ms === p.value[0]);
          return point ? pointWords(point) : '';
        },
      }),
      legend: {
        top: 0,
        left: 0,
        textStyle: { color: colours.text },
        inactiveColor: colours.line,
        data: [
          'predicted',
          'measured',
          ...(unstable.length > 0 ? ['measured, unstable'] : []),
        ],
      },
      grid: {
        left: 8,
        right: 16,
        top: 40,
        bottom: 26,
        outerBoundsMode: 'same',
        outerBoundsContain: 'axisLabel',
      },
      xAxis: axis(colours, {
        type: 'value',
        scale: true,
        boundaryGap: ['4%', '4%'],
        name: isHandoff ? 'lock held for' : 'waiter comes after',
        nameLocation: 'middle',
        nameGap: 26,
        splitNumber: ticksThatFit(90),
        axisLabel: {
          color: colours.muted,
          hideOverlap: true,
          formatter: (x: number) => quantity(x / 1e3, 's'),
        },
      }),
      yAxis: lateAxis(colours, low, high),
      series: latenessSeries(points, colours),
    }),
    table: {
      caption: `${of.algorithm}: lateness predicted and measured`,
      columns: [
        { name: isHandoff ? 'Held' : 'Delay', isNumber: true },
        { name: 'Predicted', isNumber: true },
        { name: 'Measured', isNumber: true },
        { name: 'Quartiles', isNumber: true },
        { name: 'Error', isNumber: true },
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
          : `${p.error > 0 ? '+' : '−'}${Math.abs(p.error).toFixed(1)} %`,
        p.isUnstable
          ? `no: ${p.cliff === null ? 'a cliff' : `a change of the hint by ${p.cliff.toFixed(1)} %`} gives another result`
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
      ? `The prediction is off by ${of.median_error_percent.toFixed(1)} % (median over ${of.stable_cells ?? points.length - unstable} stable delays).`
      : 'No stable delay away from cliffs, so no error is given.';
  return `${of.name ?? of.algorithm}. ${error}${unstable > 0 ? ` ${unstable} unstable, drawn hollow: a look falls close to the release.` : ''}`;
}

function lateAxis(
  colours: Theme,
  low: number,
  high: number,
): Record<string, unknown> {
  const ticks = decadeTicks(low, high, 8).map(Math.log);
  return axis(colours, {
    type: 'value',
    min: Math.log(low),
    max: Math.log(high),
    axisTick: { customValues: ticks },
    axisLabel: {
      color: colours.muted,
      customValues: ticks,
      formatter: (y: number) => us(Math.exp(y)),
    },
  });
}

function latenessSeries(
  points: readonly ReplayPoint[],
  colours: Theme,
): Record<string, unknown>[] {
  const { colour } = look(0, colours);
  const dots = (isUnstable: boolean): [number, number][] =>
    points.flatMap((p): [number, number][] =>
      p.isUnstable === isUnstable && p.measured !== null && p.measured > 0
        ? [[p.at_ms, Math.log(p.measured)]]
        : [],
    );
  const quartiles = points.flatMap((p) =>
    p.low !== null && p.high !== null && p.low > 0
      ? [
          {
            at: p.at_ms,
            low: Math.log(p.low),
            high: Math.log(p.high),
            colour,
            dash: p.isUnstable,
          },
        ]
      : [],
  );
  return [
    {
      type: 'line',
      name: 'predicted',
      symbol: 'rect',
      symbolSize: [12, 3],
      lineStyle: { color: colours.muted, type: 'dashed', width: 1.5 },
      itemStyle: { color: colours.text },
      data: points.flatMap((p): [number, number][] =>
        p.predicted !== null && p.predicted > 0
          ? [[p.at_ms, Math.log(p.predicted)]]
          : [],
      ),
    },
    intervalSeries(quartiles, 'y'),
    {
      type: 'scatter',
      name: 'measured',
      symbolSize: 10,
      itemStyle: { color: colour },
      z: 4,
      data: dots(false),
    },
    {
      type: 'scatter',
      name: 'measured, unstable',
      ...marker('emptyCircle', colours.worse, colours),
      symbolSize: 11,
      z: 4,
      data: dots(true),
    },
  ];
}

function pointWords(point: ReplayPoint): string {
  const parts = [`${point.at_ms} ms`];
  if (point.predicted !== null) parts.push(`predicted ${us(point.predicted)}`);
  if (point.measured !== null) parts.push(`measured ${us(point.measured)}`);
  if (point.error !== null) parts.push(`error ${point.error.toFixed(1)} %`);
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
      height: 300,
      option: (colours) => ({
        tooltip: tooltip(colours, {
          trigger: 'item',
          formatter: (p: { seriesName: string; value: number[] }) =>
            `${p.value[0]} threads\n${p.seriesName}: ${p.seriesName === SPUN ? percent(p.value[1], 0) : `${p.value[1]!.toFixed(2)} million`}`,
        }),
        legend: {
          top: 0,
          left: 0,
          textStyle: { color: colours.text },
          inactiveColor: colours.line,
        },
        grid: {
          left: 8,
          right: 8,
          top: 40,
          bottom: 26,
          outerBoundsMode: 'same',
          outerBoundsContain: 'axisLabel',
        },
        xAxis: axis(colours, {
          type: 'value',
          min: 0,
          minInterval: 1,
          name: 'threads',
          nameLocation: 'middle',
          nameGap: 26,
        }),
        yAxis: [
          axis(colours, {
            type: 'value',
            min: 0,
            axisLabel: {
              color: colours.muted,
              formatter: (y: number) => `${y} M/s`,
            },
          }),
          axis(colours, {
            type: 'value',
            min: 0,
            max: 1,
            splitLine: { show: false },
            axisLabel: {
              color: colours.muted,
              formatter: (y: number) => percent(y, 0),
            },
          }),
        ],
        series: [
          {
            type: 'line',
            name: DONE,
            symbol: 'circle',
            symbolSize: 9,
            lineStyle: { color: colours.series[0]!, width: 2 },
            itemStyle: { color: colours.series[0]! },
            data: cells.flatMap((c) =>
              typeof c.operations_per_cpu_s === 'number'
                ? [[c.threads, c.operations_per_cpu_s / 1e6]]
                : [],
            ),
          },
          {
            type: 'line',
            name: SPUN,
            yAxisIndex: 1,
            ...marker('emptyTriangle', colours.series[1]!, colours),
            symbolSize: 10,
            lineStyle: { color: colours.series[1]!, width: 2, type: 'dashed' },
            data: cells.flatMap((c) =>
              typeof c.spinning_share === 'number'
                ? [[c.threads, c.spinning_share]]
                : [],
            ),
          },
        ],
      }),
      table: {
        caption: `${of.algorithm} under contention`,
        columns: [
          { name: 'Threads', isNumber: true },
          { name: 'Million per CPU second', isNumber: true },
          { name: 'CPU time spinning', isNumber: true },
          { name: 'Longest wait', isNumber: true },
          { name: 'Parks per 1000', isNumber: true },
        ],
        rows: cells.map((c) => [
          c.threads,
          typeof c.operations_per_cpu_s === 'number'
            ? (c.operations_per_cpu_s / 1e6).toFixed(2)
            : null,
          percent(c.spinning_share, 0),
          typeof c.longest_ms === 'number' ? seconds(c.longest_ms / 1e3) : null,
          typeof c.parks_per_1000 === 'number'
            ? c.parks_per_1000.toFixed(2)
            : null,
        ]),
      },
    },
  ];
}

const DONE = 'operations per CPU second';
const SPUN = 'CPU time spun';

function method(record: SpinReplayRecord): HTMLElement {
  const { hint } = record;
  const ns = (value: number | null | undefined): string | null =>
    typeof value === 'number' ? quantity(value, 'ns') : null;
  const algorithms = tableElement({
    caption: 'Algorithms that were run',
    columns: [
      { name: 'Algorithm' },
      { name: 'Of' },
      { name: 'Hints before it ends', isNumber: true },
      { name: 'Hints without a look', isNumber: true },
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
