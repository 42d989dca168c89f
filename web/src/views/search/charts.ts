// The drawings of a search.

import type { ChartPlan } from '../../chart';
import { change, count, percent, quantity, span, withSpan } from '../../format';
import { filterMap } from '../../lists';
import { finite, mapNumber } from '../../numbers';
import type { Axis, Panel } from '../../plot';
import { COLOURS, diagonal, ratioAxis, seriesColour } from '../../plot';
import type { SearchRecord } from '../../records';
import { decadeTicks, evenTicks, ratioRange, wholeTicks } from '../../scales';
import { numberColumns } from '../../table';
import type { Candidate, CheckedPrediction, Step } from './shape';
import {
  describeAhead,
  sortCandidates,
  checkedPredictions,
  summariseChecks,
  costUnit,
  sortEffects,
  progressSteps,
  summariseProgress,
} from './shape';

/** Candidates drawn; the table has all. */
const MAX_DRAWN_CANDIDATES = 8;

/** The candidates by expected cost, the best first; null without any. */
export function candidatePlan(record: SearchRecord): ChartPlan | null {
  const all = sortCandidates(record);
  if (all.length === 0) return null;
  const drawn = all.filter(
    ({ name }, at) => at < MAX_DRAWN_CANDIDATES || name.startsWith('☆'),
  );
  const left = all.length - drawn.length;
  const signs = [
    all[0]!.isBest && '★ the best',
    all.some(({ name }) => name.startsWith('☆')) &&
      '☆ nearly as good with the least resource',
  ].filter(Boolean);
  return {
    name: 'Candidates',
    summary: `${['Expected cost, 90 % interval', ...signs].join('; ')}.${describeAhead(all)}${record.verdict?.headline ? ' The figure above is from fresh pairs.' : ''}${left > 0 ? ` ${left} more in the table.` : ''}`,
    panel: candidatePanel(drawn, costUnit(record)),
  };
}

function candidatePanel(rows: readonly Candidate[], unit: string): Panel {
  const ends = rows.flatMap((p) => [p.predicted, p.low, p.high].filter(finite));
  return {
    height: 28 * rows.length,
    x: costAxis(
      Math.min(...ends) * 0.98,
      Math.max(...ends) * 1.02,
      unit,
      '← better      expected cost      worse →',
    ),
    y: {
      title: 'Placement',
      names: rows.map((p) => p.name),
      words: rows.map((p) => quantity(p.predicted, unit)),
    },
    series: [
      {
        interval: 'x',
        points: rows.map((p, y) => ({
          x: p.predicted,
          y,
          low: p.low,
          high: p.high,
          isHollow: p.runs === 0,
          colour: p.isBest ? COLOURS.better : COLOURS.neutral,
          tooltip: `${p.name}\n${quantity(p.predicted, unit)}, ${count(p.runs, 'run')}`,
        })),
      },
    ],
  };
}

/** Predictions against results; null if there are none to compare. */
export function accuracyPlan(record: SearchRecord): ChartPlan | null {
  const all = checkedPredictions(record);
  if (all.length === 0) return null;
  const unit = costUnit(record);
  const ends = all.flatMap((p) => [
    p.predicted,
    p.measured,
    p.low ?? p.predicted,
    p.high ?? p.predicted,
  ]);
  const [low, high] = [Math.min(...ends) * 0.96, Math.max(...ends) * 1.04];
  return {
    name: 'Predicted against measured',
    summary: `${summariseChecks(all)} On the diagonal a prediction is exact.`,
    panel: {
      height: 320,
      x: costAxis(low, high, unit, 'predicted cost'),
      y: costAxis(low, high, unit, 'measured cost'),
      series: [
        diagonal(low, high),
        {
          colour: seriesColour(0),
          interval: 'x',
          thickness: 1,
          points: all.map((p) => ({
            x: p.predicted,
            y: p.measured,
            low: p.low,
            high: p.high,
            tooltip: accuracyTooltip(p, unit),
          })),
        },
      ],
    },
    table: {
      caption: 'Predictions and measurements',
      columns: [
        'Placement',
        ...numberColumns('Predicted', '90 % interval', 'Measured', 'Off by'),
      ],
      rows: all.map((p) => [
        p.arm,
        quantity(p.predicted, unit),
        span(p.low, p.high, (end) => quantity(end, unit)),
        quantity(p.measured, unit),
        change(p.predicted / p.measured),
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

function accuracyTooltip(p: CheckedPrediction, unit: string): string {
  const cost = (value: number): string => quantity(value, unit);
  return `${p.arm}
predicted ${withSpan(p.predicted, p.low, p.high, cost)}
measured ${cost(p.measured)}`;
}

/** The leader's expected cost, and what it may lose to the best, over runs: the search goes on
 * while that is more than it may be. */
export function progressPlan(record: SearchRecord): ChartPlan | null {
  const steps = progressSteps(record);
  if (steps.length === 0) return null;
  const unit = costUnit(record);
  const allowed = record.zone ?? record.plan?.within ?? null;
  return {
    name: 'Progress',
    summary: `${summariseProgress(steps, unit)} Above: the leader's expected cost with its 90 % interval; below: what it is expected to lose to the best placement${allowed === null ? '' : `, which may be ${percent(allowed)} at the end`}.`,
    panels: () => progressPanels(steps, allowed, unit),
    table: {
      caption: 'The leader after each block',
      columns: [
        { name: 'Runs', isNumber: true },
        'Leader',
        ...numberColumns('Expected', '90 % interval', 'A better one'),
      ],
      rows: steps.map((s) => [
        s.runs,
        s.leader,
        quantity(s.predicted, unit),
        span(s.low, s.high, (end) => quantity(end, unit)),
        mapNumber(s.better, percent),
      ]),
    },
  };
}

function progressPanels(
  steps: readonly Step[],
  allowed: number | null,
  unit: string,
): Panel[] {
  const x: Axis = { title: 'runs', hasZero: true, ticks: wholeTicks };
  const losses = filterMap(steps, (s) => (s.loss === null ? null : s.loss));
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
        title: 'expected loss to the best',
        ends: [0, 1.05 * Math.max(...losses, allowed ?? 0) || 1],
        label: (share) => percent(share, 1),
      },
      rules:
        allowed === null
          ? []
          : [
              {
                y: allowed,
                dash: '4 3',
                label: `allowed: ${percent(allowed)}`,
              },
            ],
      series: [
        {
          line: 'straight',
          shape: 'square',
          size: 4,
          colour: seriesColour(1),
          points: steps.map((s) => ({
            x: s.runs,
            y: s.loss,
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
  const loss =
    step.loss === null ? '' : `\nexpected loss: ${percent(step.loss)}`;
  return `after ${step.runs} runs ${step.leader}\n${quantity(step.predicted, unit)}${better}${loss}`;
}

/** What the model says that the cost depends on. */
export function effectPlan(record: SearchRecord): ChartPlan | null {
  const rows = sortEffects(record);
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
    panel: {
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
    table: {
      caption: `Change of ${label} from the candidate that has least of a feature to the one that has most`,
      columns: ['Feature', ...numberColumns('Change', '90 % interval')],
      rows: rows.map((r) => [r.meaning, r.change, r.interval]),
    },
  };
}
