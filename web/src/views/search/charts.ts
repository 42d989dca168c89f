// The drawings of a search.

import type { ChartPlan } from '../../chart';
import { axis, tooltip } from '../../chart';
import { visible } from '../../dom';
import { change, percent, quantity } from '../../format';
import { intervalSeries, marker } from '../../intervals';
import type { SearchRecord } from '../../records';
import { rowAxis, ticksThatFit } from '../../rows';
import { decadeTicks, ratioLabel, ratioRange, ratioTicks } from '../../scales';
import type { Theme } from '../../theme';
import type { Against, Step } from './shape';
import {
  checks,
  checksSummary,
  costUnit,
  effects,
  progressSteps,
  progressSummary,
} from './shape';

/** Predictions against what came; null where nothing can be held against them. */
export function againstPlan(record: SearchRecord): ChartPlan | null {
  const found = checks(record);
  const all = [...found.foretold, ...found.unseen];
  if (all.length === 0) return null;
  const unit = costUnit(record);
  const ends = all.flatMap((p) => [
    p.predicted,
    p.came,
    p.low ?? p.predicted,
    p.high ?? p.predicted,
  ]);
  const [low, high] = [Math.min(...ends) * 0.96, Math.max(...ends) * 1.04];
  return {
    name: 'Predicted against measured',
    summary: `${checksSummary(found)} On the diagonal a prediction is exact.`,
    height: 420,
    option: (colours) => ({
      tooltip: tooltip(colours, {
        trigger: 'item',
        formatter: (p: { seriesName: string; dataIndex: number }) =>
          againstWords(
            (p.seriesName === FORETOLD ? found.foretold : found.unseen)[
              p.dataIndex
            ],
            unit,
          ),
      }),
      legend: {
        top: 0,
        left: 0,
        itemWidth: 12,
        itemHeight: 12,
        textStyle: { color: colours.text },
        inactiveColor: colours.line,
        data: [
          ...(found.foretold.length > 0 ? [FORETOLD] : []),
          ...(found.unseen.length > 0 ? [UNSEEN] : []),
        ],
      },
      grid: {
        left: 30,
        right: 16,
        top: 36,
        bottom: 26,
        outerBoundsMode: 'same',
        outerBoundsContain: 'axisLabel',
      },
      xAxis: costAxis(
        colours,
        low,
        high,
        unit,
        'predicted cost',
        ticksThatFit(80),
      ),
      yAxis: {
        ...costAxis(colours, low, high, unit, 'what came', 8),
        nameRotate: 90,
      },
      series: [
        {
          type: 'line',
          silent: true,
          symbol: 'none',
          lineStyle: { color: colours.muted, type: 'dashed', width: 1 },
          data: [
            [Math.log(low), Math.log(low)],
            [Math.log(high), Math.log(high)],
          ],
          tooltip: { show: false },
        },
        ...cloud(
          FORETOLD,
          found.foretold,
          'circle',
          colours.series[0]!,
          colours,
        ),
        ...cloud(
          UNSEEN,
          found.unseen,
          'emptyDiamond',
          colours.series[1]!,
          colours,
        ),
      ],
    }),
    table: {
      caption: 'Predictions and what came',
      columns: [
        { name: 'Placement' },
        { name: 'Predicted', isNumber: true },
        { name: '90 % interval', isNumber: true },
        { name: 'Came', isNumber: true },
        { name: 'Off by', isNumber: true },
        { name: 'What came is' },
      ],
      rows: all.map((p, at) => [
        p.arm,
        quantity(p.predicted, unit),
        p.low !== null && p.high !== null
          ? `${quantity(p.low, unit)} to ${quantity(p.high, unit)}`
          : null,
        quantity(p.came, unit),
        change(p.predicted / p.came),
        at < found.foretold.length ? 'its first run' : 'the truth',
      ]),
    },
  };
}

const FORETOLD = 'first runs';
const UNSEEN = 'truth of arms that never ran';

function costAxis(
  colours: Theme,
  low: number,
  high: number,
  unit: string,
  name: string,
  most: number,
): Record<string, unknown> {
  const ticks = (
    high / low > 6 ? decadeTicks(low, high, most) : evenTicks(low, high, most)
  ).map(Math.log);
  return axis(colours, {
    type: 'value',
    min: Math.log(low),
    max: Math.log(high),
    name,
    nameLocation: 'middle',
    nameGap: name.startsWith('pred') ? 28 : 56,
    axisTick: { customValues: ticks },
    axisLabel: {
      color: colours.muted,
      customValues: ticks,
      formatter: (x: number) => quantity(Math.exp(x), unit),
    },
  });
}

/** Round values at even distances. */
function evenTicks(low: number, high: number, most: number): number[] {
  const raw = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10]
    .map((digit) => digit * power)
    .find((one) => one >= raw)!;
  const first = Math.ceil(low / step);
  return Array.from(
    { length: Math.floor(high / step) - first + 1 },
    (_, at) => (first + at) * step,
  );
}

function cloud(
  name: string,
  points: readonly Against[],
  symbol: string,
  colour: string,
  colours: Theme,
): Record<string, unknown>[] {
  const intervals = points.flatMap((p) =>
    p.low !== null && p.high !== null
      ? [
          {
            at: Math.log(p.came),
            low: Math.log(p.low),
            high: Math.log(p.high),
            colour,
            thickness: 1,
          },
        ]
      : [],
  );
  return [
    intervalSeries(intervals, 'x', { z: 2 }),
    {
      type: 'scatter',
      name,
      ...marker(symbol, colour, colours),
      symbolSize: 8,
      z: 4,
      data: points.map((p) => [Math.log(p.predicted), Math.log(p.came)]),
    },
  ];
}

function againstWords(p: Against | undefined, unit: string): string {
  if (!p) return '';
  const interval =
    p.low !== null && p.high !== null
      ? ` (${quantity(p.low, unit)} to ${quantity(p.high, unit)})`
      : '';
  return `${visible(p.arm)}\npredicted ${quantity(p.predicted, unit)}${interval}\ncame ${quantity(p.came, unit)}`;
}

/** The leader's expected cost and the probability of a better one, over runs. */
export function progressPlan(record: SearchRecord): ChartPlan | null {
  const steps = progressSteps(record);
  if (steps.length === 0) return null;
  const unit = costUnit(record);
  const error = record.plan?.error ?? null;
  return {
    name: 'Progress',
    summary: `${progressSummary(steps, unit)} Above: the leader's expected cost with its 90 % interval; below: the probability that another is better${error === null ? '' : `, which may be ${percent(error)}`}.`,
    height: 340,
    option: (colours) => ({
      tooltip: tooltip(colours, {
        trigger: 'item',
        formatter: (p: { dataIndex: number }) =>
          stepWords(steps[p.dataIndex], unit),
      }),
      grid: [
        { left: 70, right: 16, top: 12, height: 170, outerBoundsMode: 'none' },
        { left: 70, right: 16, top: 216, bottom: 46, outerBoundsMode: 'none' },
      ],
      xAxis: [0, 1].map((gridIndex) =>
        axis(colours, {
          type: 'value',
          gridIndex,
          min: 0,
          max: 'dataMax',
          minInterval: 1,
          ...(gridIndex === 1
            ? { name: 'runs', nameLocation: 'middle', nameGap: 26 }
            : {}),
          splitLine: { show: false },
        }),
      ),
      yAxis: [
        axis(colours, {
          type: 'value',
          scale: true,
          splitNumber: 4,
          axisLabel: {
            color: colours.muted,
            formatter: (y: number) => quantity(y, unit),
          },
        }),
        axis(colours, {
          type: 'value',
          gridIndex: 1,
          min: 0,
          max: 1,
          splitNumber: 2,
          axisLabel: {
            color: colours.muted,
            formatter: (y: number) => percent(y, 0),
          },
        }),
      ],
      series: progressSeries(steps, error, colours),
    }),
    table: {
      caption: 'The leader after each block',
      columns: [
        { name: 'Runs', isNumber: true },
        { name: 'Leader' },
        { name: 'Expected', isNumber: true },
        { name: '90 % interval', isNumber: true },
        { name: 'P(better)', isNumber: true },
        { name: 'True regret', isNumber: true },
      ],
      rows: steps.map((s) => [
        s.runs,
        s.leader,
        quantity(s.predicted, unit),
        s.low !== null && s.high !== null
          ? `${quantity(s.low, unit)} to ${quantity(s.high, unit)}`
          : null,
        s.doubt === null ? null : percent(s.doubt),
        s.regret === null ? null : percent(s.regret),
      ]),
    },
  };
}

function progressSeries(
  steps: readonly Step[],
  error: number | null,
  colours: Theme,
): Record<string, unknown>[] {
  const colour = colours.series[0]!;
  const intervals = steps.flatMap((s) =>
    s.low !== null && s.high !== null
      ? [{ at: s.runs, low: s.low, high: s.high, colour, thickness: 1.5 }]
      : [],
  );
  return [
    // Invisible ends, so that the axis holds the intervals.
    {
      type: 'scatter',
      silent: true,
      symbolSize: 0,
      data: intervals.flatMap((i) => [
        [i.at, i.low],
        [i.at, i.high],
      ]),
      tooltip: { show: false },
    },
    intervalSeries(intervals, 'y', { clip: false }),
    {
      type: 'line',
      symbol: 'circle',
      symbolSize: 8,
      lineStyle: { color: colour, width: 1.5, type: 'dotted' },
      itemStyle: { color: colour },
      data: steps.map((s) => [s.runs, s.predicted]),
    },
    {
      type: 'line',
      xAxisIndex: 1,
      yAxisIndex: 1,
      symbol: 'rect',
      symbolSize: 7,
      lineStyle: { color: colours.series[1]!, width: 2 },
      itemStyle: { color: colours.series[1]! },
      data: steps.map((s) => [s.runs, s.doubt ?? '-']),
      ...(error === null
        ? {}
        : {
            markLine: {
              silent: true,
              symbol: 'none',
              label: { show: false },
              lineStyle: { color: colours.muted, type: 'dashed' },
              data: [{ yAxis: error }],
            },
          }),
    },
  ];
}

function stepWords(step: Step | undefined, unit: string): string {
  if (!step) return '';
  const better =
    step.doubt === null
      ? ''
      : `\nprobability of a better one ${percent(step.doubt)}`;
  return `after ${step.runs} runs ${visible(step.leader)}\n${quantity(step.predicted, unit)}${better}`;
}

/** What the model says that the cost depends on. */
export function effectPlan(record: SearchRecord): ChartPlan | null {
  const rows = effects(record);
  if (rows.length === 0) return null;
  const [low, high] = ratioRange(
    rows.flatMap((r) => [r.low, r.high]),
    0.02,
  );
  const sure = rows.filter((r) => r.isClear);
  const label = record.metric?.label || 'the metric';
  return {
    name: 'What it is sensitive to',
    summary:
      sure.length > 0
        ? `Over the range of the candidates ${label} changes clearly with ${sure.map((r) => `${r.meaning} (${r.change})`).join('; ')}. Lines are 90 % intervals.`
        : `${label} changes clearly with nothing that candidates differ in. Lines are 90 % intervals.`,
    height: 56 + 26 * rows.length,
    option: (colours) => {
      const ticks = ratioTicks(low, high, ticksThatFit(76)).map(Math.log);
      const isSure = (at: number): boolean => sure.includes(rows[at]!);
      return {
        tooltip: tooltip(colours, {
          trigger: 'item',
          formatter: (p: { dataIndex: number }) => {
            const r = rows[p.dataIndex];
            return r
              ? `${visible(r.meaning)}\n${r.change} (${r.interval})`
              : '';
          },
        }),
        xAxis: axis(colours, {
          type: 'value',
          min: Math.log(low),
          max: Math.log(high),
          axisTick: { customValues: ticks },
          axisLabel: {
            color: colours.muted,
            customValues: ticks,
            formatter: (x: number) => ratioLabel(Math.exp(x)),
          },
        }),
        yAxis: rowAxis(
          colours,
          rows.map((r) => r.name),
        ),
        series: [
          intervalSeries(
            rows.map((r, at) => ({
              at,
              low: Math.log(r.low),
              high: Math.log(r.high),
              colour: isSure(at) ? colours.series[0]! : colours.neutral,
            })),
            'x',
          ),
          {
            type: 'scatter',
            symbolSize: 9,
            z: 4,
            data: rows.map((r, at) => ({
              value: [Math.log(r.ratio), at],
              ...(isSure(at)
                ? marker('circle', colours.series[0]!, colours)
                : marker('emptyCircle', colours.neutral, colours)),
            })),
            markLine: {
              silent: true,
              symbol: 'none',
              label: { show: false },
              lineStyle: { color: colours.text, type: 'solid' },
              data: [{ xAxis: 0 }],
            },
          },
        ],
      };
    },
    table: {
      caption: `Change of ${label} from the candidate that has least of a feature to the one that has most`,
      columns: [
        { name: 'Feature' },
        { name: 'Change', isNumber: true },
        { name: '90 % interval', isNumber: true },
      ],
      rows: rows.map((r) => [r.meaning, r.change, r.interval]),
    },
  };
}
