// The drawings of a comparison.

import type { ChartPlan } from '../../chart';
import { axis, tooltip } from '../../chart';
import { visible } from '../../dom';
import { quantity } from '../../format';
import { intervalSeries, marker } from '../../intervals';
import type { Comparison } from '../../records';
import { nameWidth, rowAxis, ticksThatFit } from '../../rows';
import { decadeTicks, ratioLabel, ratioRange, ratioTicks } from '../../scales';
import type { Theme } from '../../theme';
import type { ArmLine, RatioLine, Standing } from './shape';
import {
  contrastRows,
  dotsSummary,
  isRate,
  quantileRows,
  ratioLines,
  ratioSummary,
  swarm,
} from './shape';

/** Symbol and turn by standing: position, shape and word say the same. */
const SHAPES: Readonly<Record<Standing, [symbol: string, turned: number]>> = {
  baseline: ['diamond', 0],
  faster: ['triangle', 90],
  slower: ['triangle', -90],
  same: ['rect', 0],
  undecided: ['emptyCircle', 0],
  eliminated: ['emptyRect', 0],
  invalid: ['emptyDiamond', 0],
  unknown: ['emptyCircle', 0],
};

/** Better, worse, neither. */
export function standingColour(standing: Standing, colours: Theme): string {
  if (standing === 'faster') return colours.better;
  return standing === 'slower' ? colours.worse : colours.neutral;
}

/** Every arm over the baseline; null without contrasts. */
export function ratioPlan(
  record: Comparison,
  lines: readonly ArmLine[],
): ChartPlan | null {
  const isUp = isRate(record);
  const rows = ratioLines(lines, isUp);
  if (rows.length === 0) return null;
  const effect = record.plan?.min_effect ?? 0;
  const baseline = record.baseline ?? 'the baseline';
  const label = record.metric?.label || 'the metric';
  const [low, high] = ratioRange(
    rows.flatMap((r) => [r.ratio, r.low ?? r.ratio, r.high ?? r.ratio]),
    Math.max(0.01, effect * 1.5),
  );
  return {
    name: `Change against ${baseline}`,
    summary: `${ratioSummary(rows, `${label} against ${baseline}, ${isUp ? 'right' : 'left'} is better`)}${effect > 0 ? ` The band is ±${(effect * 100).toFixed(effect < 0.001 ? 2 : 1)} %: within it, arms are the same.` : ''}`,
    height: 88 + 30 * rows.length,
    option: (colours) => ({
      grid: {
        left: 8,
        right: 8,
        top: 24,
        bottom: 26,
        outerBoundsMode: 'same',
        outerBoundsContain: 'axisLabel',
      },
      tooltip: tooltip(colours, {
        trigger: 'item',
        formatter: (p: { dataIndex: number }) => ratioWords(rows[p.dataIndex]),
      }),
      xAxis: ratioAxis(
        colours,
        low,
        high,
        isUp
          ? `← worse      ${visible(label)}      better →`
          : `← better      ${visible(label)}      worse →`,
      ),
      yAxis: [
        rowAxis(
          colours,
          rows.map((r) => (r.isBest ? `${r.name} ★` : r.name)),
        ),
        rowAxis(
          colours,
          // On a phone there is room for the word only.
          rows.map((r) =>
            ticksThatFit() > 4 ? `${r.change}  ${r.word}` : r.word,
          ),
          { position: 'right' },
        ),
      ],
      series: [
        intervalSeries(
          rows.flatMap((r, at) =>
            r.low !== null && r.high !== null
              ? [
                  {
                    at,
                    low: Math.log(r.low),
                    high: Math.log(r.high),
                    colour: standingColour(r.standing, colours),
                    thickness: 3,
                  },
                ]
              : [],
          ),
          'x',
        ),
        ratioPoints(rows, isUp, effect, baseline, colours),
      ],
    }),
    table: {
      caption: `${label} against ${baseline}`,
      columns: [
        { name: 'Arm' },
        { name: 'Change', isNumber: true },
        { name: 'Interval', isNumber: true },
        { name: 'Verdict' },
      ],
      rows: rows.map((r) => [r.name, r.change, r.interval || null, r.word]),
    },
  };
}

/** All that contrasts say, beyond what the ratio plot shows. */
export const contrastTable = (
  lines: readonly ArmLine[],
): NonNullable<ChartPlan['table']> => ({
  caption:
    'Arms against the baseline; intervals and p-values hold for all arms and looks together',
  columns: [
    { name: 'Arm' },
    { name: 'Typical', isNumber: true },
    { name: 'Verdict' },
    { name: 'p, adjusted', isNumber: true },
    { name: 'CPU time', isNumber: true },
    { name: 'Mean', isNumber: true },
    { name: '90th percentile', isNumber: true },
    { name: 'Spread', isNumber: true },
    { name: 'Depends on' },
  ],
  rows: contrastRows(lines),
});

function ratioAxis(
  colours: Theme,
  low: number,
  high: number,
  name: string,
): Record<string, unknown> {
  const ticks = ratioTicks(low, high, ticksThatFit(76)).map(Math.log);
  return axis(colours, {
    type: 'value',
    min: Math.log(low),
    max: Math.log(high),
    name,
    nameLocation: 'middle',
    nameGap: 28,
    axisTick: { customValues: ticks },
    axisLabel: {
      color: colours.muted,
      customValues: ticks,
      formatter: (x: number) => ratioLabel(Math.exp(x)),
    },
  });
}

function ratioPoints(
  rows: readonly RatioLine[],
  isUp: boolean,
  effect: number,
  baseline: string,
  colours: Theme,
): Record<string, unknown> {
  return {
    type: 'scatter',
    z: 4,
    data: rows.map((r, at) => {
      const [symbol, symbolRotate] = SHAPES[r.standing];
      return {
        value: [Math.log(r.ratio), at],
        ...marker(symbol, standingColour(r.standing, colours), colours),
        symbolRotate: isUp ? -symbolRotate : symbolRotate,
        symbolSize: 13,
      };
    }),
    markLine: {
      silent: true,
      symbol: 'none',
      label: {
        show: true,
        position: 'start',
        formatter: visible(baseline),
        color: colours.text,
        width: nameWidth(),
        overflow: 'truncate',
      },
      lineStyle: { color: colours.text, type: 'solid', width: 1.5 },
      data: [{ xAxis: 0 }],
    },
    ...(effect > 0
      ? {
          markArea: {
            silent: true,
            itemStyle: { color: colours.neutral, opacity: 0.18 },
            data: [
              [
                { xAxis: -Math.log(1 + effect) },
                { xAxis: Math.log(1 + effect) },
              ],
            ],
          },
        }
      : {}),
  };
}

function ratioWords(row: RatioLine | undefined): string {
  if (!row) return '';
  const interval = row.interval ? ` (${row.interval})` : '';
  return `${visible(row.name)}\n${row.change}${interval}\n${row.word}`;
}

/** Where values stand along x: linear, or logarithmic where they span more than 20 times. */
export interface Along {
  isLog: boolean;
  to(value: number): number;
  min: number;
  max: number;
  axis(colours: Theme, unit: string): Record<string, unknown>;
}

export function along(values: readonly number[]): Along {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!(low <= high)) [low, high] = [0, 1];
  const isLog = low > 0 && high / low > 20;
  const to = isLog ? Math.log : (value: number): number => value;
  const margin = (to(high) - to(low)) * 0.03 || Math.abs(to(high)) * 0.01 || 1;
  const [min, max] = [to(low) - margin, to(high) + margin];
  return {
    isLog,
    to,
    min,
    max,
    axis: (colours, unit) => {
      const label = (value: number): string => quantity(value, unit);
      const logs = isLog
        ? decadeTicks(Math.exp(min), Math.exp(max), ticksThatFit(70)).map(
            Math.log,
          )
        : [];
      return axis(colours, {
        type: 'value',
        min,
        max,
        splitNumber: ticksThatFit(90),
        ...(isLog ? { axisTick: { customValues: logs } } : {}),
        axisLabel: {
          color: colours.muted,
          hideOverlap: true,
          showMinLabel: isLog,
          showMaxLabel: isLog,
          formatter: (x: number) => label(isLog ? Math.exp(x) : x),
          ...(isLog ? { customValues: logs } : {}),
        },
      });
    },
  };
}

/** Every run of every arm; null without runs. */
export function dotsPlan(
  record: Comparison,
  all: readonly ArmLine[],
): ChartPlan | null {
  const lines = all.filter((line) => line.dots.length > 0);
  if (lines.length === 0) return null;
  const unit = record.metric?.unit ?? '';
  const lane = lines.length <= 4 ? 64 : lines.length <= 12 ? 48 : 26;
  const scale = along(lines.flatMap((line) => line.dots.map((d) => d.value)));
  const hasScreening = lines.some((line) =>
    line.dots.some((d) => d.isScreening),
  );
  return {
    name: 'Every run',
    summary: `${dotsSummary(lines, unit)} The bar is the median, the box its 95 % interval.${hasScreening ? ' Hollow: runs of the screening.' : ''}`,
    height: 50 + lane * lines.length,
    option: (colours) => ({
      tooltip: tooltip(colours, {
        trigger: 'item',
        formatter: (p: { value: number[] }) =>
          `${visible(lines[p.value[2]!]?.name ?? '')}\n${quantity(p.value[3], unit)}${p.value[4]! >= 0 ? `, block ${p.value[4]}` : ''}`,
      }),
      xAxis: scale.axis(colours, unit),
      yAxis: rowAxis(
        colours,
        lines.map((line) => laneName(line)),
      ),
      series: [
        ...clouds(lines, scale, lane, colours),
        ...middles(lines, scale, colours),
      ],
    }),
    table: {
      caption: 'Runs of each arm',
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

function laneName(line: ArmLine): string {
  if (line.isBest) return `${line.name} ★`;
  return line.standing === 'eliminated' || line.standing === 'invalid'
    ? `${line.name} (${line.word})`
    : line.name;
}

function clouds(
  lines: readonly ArmLine[],
  scale: Along,
  lane: number,
  colours: Theme,
): Record<string, unknown>[] {
  const size = lane >= 48 ? 6 : 4.5;
  const pixels = Math.max(
    160,
    Math.min(1088, document.documentElement.clientWidth - 32) - nameWidth(),
  );
  const half = 0.42;
  return lines.map((line, row) => {
    const places = line.dots.map(
      (d) => (scale.to(d.value) - scale.min) / (scale.max - scale.min),
    );
    const across = swarm(
      places,
      (size + 0.5) / pixels,
      Math.floor((lane * 2 * half) / (size + 0.5)),
    );
    const colour = standingColour(line.standing, colours);
    const hollow = marker('emptyCircle', colour, colours);
    return {
      type: 'scatter',
      symbolSize: size,
      large: false,
      data: line.dots.map((d, at) => ({
        value: [
          scale.to(d.value),
          row + across[at]! * half,
          row,
          d.value,
          d.block ?? -1,
        ],
        ...(d.isScreening ? hollow : {}),
      })),
      symbol: 'circle',
      itemStyle: { color: colour, opacity: 0.75 },
    };
  });
}

/** Medians over the dots, their intervals behind them. */
function middles(
  lines: readonly ArmLine[],
  scale: Along,
  colours: Theme,
): Record<string, unknown>[] {
  const rows = lines.flatMap((line, at) =>
    line.low !== null && line.high !== null
      ? [
          {
            at,
            low: scale.to(line.low),
            high: scale.to(line.high),
            colour: colours.text,
            box: 22,
          },
        ]
      : [],
  );
  return [
    intervalSeries(rows, 'x', { z: 1 }),
    {
      type: 'scatter',
      z: 6,
      symbol: 'rect',
      symbolSize: [3, 26],
      silent: true,
      tooltip: { show: false },
      itemStyle: { color: colours.text },
      data: lines.flatMap((line, at) =>
        line.median === null ? [] : [[scale.to(line.median), at]],
      ),
    },
  ];
}
