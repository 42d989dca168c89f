// The drawings of a search.

import type { ChartPlan } from '../../chart';
import { change, percent, quantity } from '../../format';
import type { Axis, Panel, Series } from '../../plot';
import { COLOURS, ratioAxis, seriesColour } from '../../plot';
import type { SearchRecord } from '../../records';
import { decadeTicks, evenTicks, ratioRange, wholeTicks } from '../../scales';
import { numberColumns } from '../../table';
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
  const all = [...found.first, ...found.unseen];
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
    panels: (): Panel[] => [
      {
        height: 320,
        x: costAxis(low, high, unit, 'predicted cost'),
        y: costAxis(low, high, unit, 'measured cost'),
        series: [
          {
            line: 'straight',
            dash: '4 3',
            width: 1,
            size: 0,
            colour: COLOURS.muted,
            points: [
              { x: low, y: low },
              { x: high, y: high },
            ],
          },
          cloud('first runs', found.first, unit, {
            colour: seriesColour(0),
          }),
          cloud('truth of arms that never ran', found.unseen, unit, {
            colour: seriesColour(1),
            shape: 'diamond',
            isHollow: true,
          }),
        ],
      },
    ],
    table: {
      caption: 'Predictions and what came',
      columns: [
        { name: 'Placement' },
        ...numberColumns('Predicted', '90 % interval', 'Came', 'Off by'),
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
        at < found.first.length ? 'its first run' : 'the truth',
      ]),
    },
  };
}

const costAxis = (
  low: number,
  high: number,
  unit: string,
  title: string,
): Axis => ({
  title,
  type: 'log',
  ends: [low, high],
  ticks: high / low > 6 ? decadeTicks : evenTicks,
  label: (cost) => quantity(cost, unit),
});

/** Predictions with their intervals, over what came; without a name where there are none. */
const cloud = (
  name: string,
  points: readonly Against[],
  unit: string,
  look: Partial<Series>,
): Series => ({
  ...look,
  ...(points.length > 0 ? { name } : {}),
  interval: 'x',
  thickness: 1,
  points: points.map((p) => ({
    x: p.predicted,
    y: p.came,
    low: p.low,
    high: p.high,
    tooltip: againstTooltip(p, unit),
  })),
});

function againstTooltip(p: Against, unit: string): string {
  const interval =
    p.low !== null && p.high !== null
      ? ` (${quantity(p.low, unit)} to ${quantity(p.high, unit)})`
      : '';
  return `${p.arm}\npredicted ${quantity(p.predicted, unit)}${interval}\ncame ${quantity(p.came, unit)}`;
}

/** The leader's expected cost and the probability of a better arm, over runs. */
export function progressPlan(record: SearchRecord): ChartPlan | null {
  const steps = progressSteps(record);
  if (steps.length === 0) return null;
  const unit = costUnit(record);
  const error = record.plan?.error ?? null;
  return {
    name: 'Progress',
    summary: `${progressSummary(steps, unit)} Above: the leader's expected cost with its 90 % interval; below: the probability that another is better${error === null ? '' : `, which may be ${percent(error)}`}.`,
    panels: () => progressPanels(steps, error, unit),
    table: {
      caption: 'The leader after each block',
      columns: [
        { name: 'Runs', isNumber: true },
        { name: 'Leader' },
        ...numberColumns(
          'Expected',
          '90 % interval',
          'A better one',
          'True regret',
        ),
      ],
      rows: steps.map((s) => [
        s.runs,
        s.leader,
        quantity(s.predicted, unit),
        s.low !== null && s.high !== null
          ? `${quantity(s.low, unit)} to ${quantity(s.high, unit)}`
          : null,
        s.better === null ? null : percent(s.better),
        s.regret === null ? null : percent(s.regret),
      ]),
    },
  };
}

function progressPanels(
  steps: readonly Step[],
  error: number | null,
  unit: string,
): Panel[] {
  const x: Axis = { title: 'runs', hasZero: true, ticks: wholeTicks };
  return [
    {
      height: 170,
      x,
      y: {
        title: "the leader's expected cost",
        label: (cost) => quantity(cost, unit),
      },
      series: [
        {
          line: 'straight',
          dash: '2 3',
          width: 1.5,
          interval: 'y',
          thickness: 1.5,
          colour: seriesColour(0),
          points: steps.map((s) => ({
            x: s.runs,
            y: s.predicted,
            low: s.low,
            high: s.high,
            tooltip: stepTooltip(s, unit),
          })),
        },
      ],
    },
    {
      height: 80,
      x,
      y: {
        title: 'probability that another is better',
        ends: [0, 1.05],
        label: (share) => percent(share, 0),
      },
      rules:
        error === null
          ? []
          : [{ y: error, dash: '4 3', label: `allowed: ${percent(error)}` }],
      series: [
        {
          line: 'straight',
          shape: 'square',
          size: 4,
          colour: seriesColour(1),
          points: steps.map((s) => ({
            x: s.runs,
            y: s.better,
            tooltip: stepTooltip(s, unit),
          })),
        },
      ],
    },
  ];
}

function stepTooltip(step: Step, unit: string): string {
  const better =
    step.better === null ? '' : `\na better one: ${percent(step.better)}`;
  return `after ${step.runs} runs ${step.leader}\n${quantity(step.predicted, unit)}${better}`;
}

/** What the model says that the cost depends on. */
export function effectPlan(record: SearchRecord): ChartPlan | null {
  const rows = effects(record);
  if (rows.length === 0) return null;
  const ends = ratioRange(
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
    panels: (): Panel[] => [
      {
        height: 26 * rows.length,
        x: ratioAxis(`change of ${label}`, ends),
        y: { title: 'Feature', names: rows.map((r) => r.name) },
        rules: [{ x: 1 }],
        series: [
          {
            interval: 'x',
            points: rows.map((r, y) => ({
              ...(r.isClear ? { colour: seriesColour(0) } : { isHollow: true }),
              x: r.ratio,
              y,
              low: r.low,
              high: r.high,
              tooltip: `${r.meaning}\n${r.change} (${r.interval})`,
            })),
          },
        ],
      },
    ],
    table: {
      caption: `Change of ${label} from the candidate that has least of a feature to the one that has most`,
      columns: [
        { name: 'Feature' },
        ...numberColumns('Change', '90 % interval'),
      ],
      rows: rows.map((r) => [r.meaning, r.change, r.interval]),
    },
  };
}
