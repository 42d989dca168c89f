// The drawings of a comparison's runs over time, and of how they are spread.

import type { ChartPlan } from '../../chart';
import { axis, tooltip } from '../../chart';
import { visible } from '../../dom';
import { change, percent, quantity } from '../../format';
import { look, marker } from '../../intervals';
import type { Comparison } from '../../records';
import { ratioLabel, ratioTicks } from '../../scales';
import type { Theme } from '../../theme';
import { along } from './charts';
import type { ArmLine, Moment } from './shape';
import { moments, quantileRows, steps, timeSummary, wander } from './shape';

/** Arms that are distinguished by colour and shape; of more, all dots look alike. */
const MOST_APART = 8;
const [RUNNING, OTHERS, STEAL] = [
  'running median',
  'taken by others',
  'taken by the hypervisor',
];
/** Curves of the distribution shown at first; others are a click away. */
const MOST_CURVES = 6;

/** Every run over its arm's median, in time order, one arm before the others if wanted; null without times. */
export function timePlan(
  lines: readonly ArmLine[],
  highlighted: string | null = null,
): ChartPlan | null {
  const all = moments(lines);
  if (all.length === 0) return null;
  const path = wander(all);
  const hasLoad = all.some((m) => m.foreign !== null || m.steal !== null);
  return {
    name: 'Runs in time order',
    summary:
      timeSummary(path, all) +
      (hasLoad
        ? ' Below: CPUs that others, or the hypervisor, took meanwhile.'
        : ''),
    height: hasLoad ? 380 : 280,
    option: (colours) => ({
      tooltip: tooltip(colours, {
        trigger: 'item',
        formatter: (p: { value: number[] }) =>
          momentWords(all[p.value[2]!], lines),
      }),
      legend: {
        ...legend(colours),
        itemWidth: 10,
        itemHeight: 10,
        data: [
          ...(lines.length <= MOST_APART
            ? lines.filter((l) => l.dots.length > 0).map((l) => visible(l.name))
            : []),
          RUNNING,
          ...(hasLoad ? [OTHERS, STEAL] : []),
        ],
      },
      grid: grids(hasLoad),
      xAxis: timeAxes(colours, hasLoad),
      yAxis: levelAxes(colours, all, hasLoad),
      series: [
        ...clouds(lines, all, highlighted, colours),
        running(path, colours),
        ...(hasLoad ? load(all, colours) : []),
      ],
    }),
    table: {
      caption: 'Runs in time order, the first 500',
      columns: [
        { name: 'At', isNumber: true },
        { name: 'Arm' },
        { name: 'Block', isNumber: true },
        { name: 'Over the median', isNumber: true },
        { name: 'Others, CPUs', isNumber: true },
        { name: 'Steal, CPUs', isNumber: true },
      ],
      rows: all
        .slice(0, 500)
        .map((m) => [
          quantity(m.at, 's'),
          lines[m.arm]?.name ?? '',
          m.block,
          change(m.ratio),
          m.foreign?.toFixed(2) ?? null,
          m.steal?.toFixed(2) ?? null,
        ]),
    },
  };
}

const grids = (hasLoad: boolean): unknown =>
  hasLoad
    ? [
        { left: 60, right: 16, top: 40, height: 200, outerBoundsMode: 'none' },
        { left: 60, right: 16, top: 272, bottom: 28, outerBoundsMode: 'none' },
      ]
    : {
        left: 8,
        right: 16,
        top: 40,
        bottom: 8,
        outerBoundsMode: 'same',
        outerBoundsContain: 'axisLabel',
      };

function legend(colours: Theme): Record<string, unknown> {
  return {
    type: 'scroll',
    top: 0,
    left: 0,
    right: 0,
    textStyle: { color: colours.text, width: 180, overflow: 'truncate' },
    pageTextStyle: { color: colours.muted },
    pageIconColor: colours.text,
    inactiveColor: colours.line,
  };
}

function timeAxes(colours: Theme, hasLoad: boolean): unknown {
  const one = (gridIndex: number): Record<string, unknown> =>
    axis(colours, {
      type: 'value',
      gridIndex,
      min: 0,
      max: 'dataMax',
      splitLine: { show: false },
      axisLabel: {
        color: colours.muted,
        hideOverlap: true,
        showMaxLabel: false,
        formatter: (s: number) => quantity(s, 's'),
      },
    });
  return hasLoad ? [one(0), one(1)] : one(0);
}

function levelAxes(
  colours: Theme,
  all: readonly Moment[],
  hasLoad: boolean,
): unknown {
  const far =
    Math.max(0.02, ...all.map((m) => Math.abs(Math.log(m.ratio)))) * 1.05;
  const ticks = ratioTicks(Math.exp(-far), Math.exp(far), 7).map(Math.log);
  const level = axis(colours, {
    type: 'value',
    min: -far,
    max: far,
    axisTick: { customValues: ticks },
    axisLabel: {
      color: colours.muted,
      customValues: ticks,
      formatter: (y: number) => ratioLabel(Math.exp(y)),
    },
  });
  return hasLoad
    ? [
        level,
        axis(colours, {
          type: 'value',
          gridIndex: 1,
          min: 0,
          splitNumber: 2,
          name: 'CPUs',
          nameLocation: 'middle',
          nameRotate: 90,
          nameGap: 34,
          axisLabel: { color: colours.muted },
        }),
      ]
    : level;
}

function clouds(
  lines: readonly ArmLine[],
  all: readonly Moment[],
  highlighted: string | null,
  colours: Theme,
): Record<string, unknown>[] {
  const isApart = lines.length <= MOST_APART;
  const plain = {
    symbol: 'circle',
    itemStyle: { color: colours.neutral, opacity: 0.75 },
  };
  const how = (
    line: ArmLine,
    symbol: string,
    colour: string,
  ): Record<string, unknown> => {
    if (highlighted === null)
      return isApart ? marker(symbol, colour, colours) : plain;
    return line.name === highlighted
      ? {
          symbol: 'diamond',
          symbolSize: 10,
          z: 4,
          itemStyle: { color: colours.series[0]! },
        }
      : {
          symbol: 'circle',
          itemStyle: { color: colours.neutral, opacity: 0.25 },
        };
  };
  return lines.map((line, arm) => {
    const { colour, symbol } = look(arm, colours);
    return {
      type: 'scatter',
      name: visible(line.name),
      symbolSize: 6,
      ...how(line, symbol, colour),
      data: all.flatMap((m, at) =>
        m.arm === arm ? [[m.at, Math.log(m.ratio), at]] : [],
      ),
    };
  });
}

const running = (
  path: readonly [number, number][],
  colours: Theme,
): Record<string, unknown> => ({
  type: 'line',
  name: RUNNING,
  silent: true,
  symbol: 'none',
  z: 5,
  lineStyle: { color: colours.text, width: 2 },
  itemStyle: { color: colours.text },
  data: path.map(([at, level]) => [at, Math.log(level)]),
});

function load(
  all: readonly Moment[],
  colours: Theme,
): Record<string, unknown>[] {
  const series = (
    name: string,
    of: (m: Moment) => number | null,
    colour: string,
    type: string,
  ): Record<string, unknown> => ({
    type: 'line',
    name,
    step: 'end',
    symbol: 'none',
    silent: true,
    xAxisIndex: 1,
    yAxisIndex: 1,
    lineStyle: { color: colour, width: 1.5, type },
    itemStyle: { color: colour },
    data: all.flatMap((m) => {
      const value = of(m);
      return value === null ? [] : [[m.at, value]];
    }),
  });
  return [
    series(OTHERS, (m) => m.foreign, colours.series[1]!, 'solid'),
    series(STEAL, (m) => m.steal, colours.series[3]!, 'dashed'),
  ];
}

function momentWords(
  moment: Moment | undefined,
  lines: readonly ArmLine[],
): string {
  if (!moment) return '';
  const block = moment.block === null ? '' : `, block ${moment.block}`;
  return `${visible(lines[moment.arm]?.name ?? '')}\n${change(moment.ratio)} of its median\n${quantity(moment.at, 's')} after the start${block}`;
}

/**
 * The share of runs up to a value, an arm a line. Every run is a step: unlike
 * a histogram's bins or a smoothed density, nothing hides or makes a tail.
 */
export function spreadPlan(
  record: Comparison,
  all: readonly ArmLine[],
): ChartPlan | null {
  const lines = all.filter((line) => line.dots.length > 1);
  if (lines.length === 0) return null;
  const unit = record.metric?.unit ?? '';
  const scale = along(lines.flatMap((line) => line.dots.map((d) => d.value)));
  return {
    name: 'The distribution',
    summary:
      `The share of runs up to a value: every run is a step, so that tails show as they are. ${lines.length > MOST_CURVES ? `${MOST_CURVES} arms are shown, the legend shows others.` : ''}`.trim(),
    height: 320,
    option: (colours) => ({
      tooltip: tooltip(colours, {
        trigger: 'item',
        formatter: (p: { seriesIndex: number; value: number[] }) =>
          `${visible(lines[p.seriesIndex]?.name ?? '')}\n${percent(p.value[1], 0)} up to ${quantity(p.value[2], unit)}`,
      }),
      legend: { ...legend(colours), selected: selected(lines) },
      grid: grids(false),
      // ECharts fits a linear axis to the arms that are shown.
      xAxis: scale.isLog
        ? scale.axis(colours, unit)
        : {
            ...scale.axis(colours, unit),
            min: undefined,
            max: undefined,
            scale: true,
          },
      yAxis: axis(colours, {
        type: 'value',
        min: 0,
        max: 1,
        axisLabel: {
          color: colours.muted,
          formatter: (share: number) => percent(share, 0),
        },
      }),
      series: lines.map((line, at) => {
        const { colour, dash } = look(at, colours);
        return {
          type: 'line',
          name: visible(line.name),
          step: 'end',
          symbol: 'circle',
          symbolSize: 3,
          showSymbol: line.dots.length <= 40,
          lineStyle: { color: colour, type: dash, width: 2 },
          itemStyle: { color: colour },
          data: steps(line.dots.map((d) => d.value)).map(([value, share]) => [
            scale.to(value),
            share,
            value,
          ]),
        };
      }),
    }),
    table: {
      caption: 'Quantiles of each arm',
      columns: [
        { name: 'Arm' },
        { name: 'Runs', isNumber: true },
        ...['least', '10 %', 'median', '90 %', '99 %', 'most'].map((name) => ({
          name,
          isNumber: true,
        })),
      ],
      rows: quantileRows(lines, unit),
    },
  };
}

/** The baseline, the best and the next ones by cost. */
function selected(lines: readonly ArmLine[]): Record<string, boolean> {
  const first = [...lines]
    .sort((a, b) => rank(a) - rank(b))
    .slice(0, MOST_CURVES);
  return Object.fromEntries(
    lines.map((line) => [visible(line.name), first.includes(line)]),
  );
}

const rank = (line: ArmLine): number =>
  line.standing === 'baseline' || line.isBest
    ? 0
    : line.standing === 'eliminated' || line.standing === 'invalid'
      ? 2
      : 1;
