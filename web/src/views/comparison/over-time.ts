// The drawings of a comparison's runs over time, and of how they are spread.

import type { ChartPlan } from '../../chart';
import { change, fixed, percent, quantity } from '../../format';
import type { Axis, Look, Panel, Series } from '../../plot';
import { COLOURS, seriesLook, ratioAxis, seriesColour } from '../../plot';
import type { Comparison } from '../../records';
import { numberColumns } from '../../table';
import { valueAxis, armColour, metricName } from './charts';
import type { Moment } from './runs';
import type { ArmLine } from './shape';
import {
  cumulativeSteps,
  runningMedian,
  runsInTime,
  timeSummary,
} from './runs';
import { isLeftOut } from './shape';
import { filterMap } from '../../lists';

/** Maximum number of curves that are shown at first. */
const MAX_CURVES = 6;

/** Every run relative to its arm's median, in time order; one arm may be highlighted. Null without
 * times. */
export function timePlan(
  lines: readonly ArmLine[],
  highlighted: string | null = null,
): ChartPlan | null {
  const all = runsInTime(lines);
  if (all.length === 0) return null;
  const path = runningMedian(all);
  const hasLoad = all.some((m) => m.foreign !== null || m.steal !== null);
  return {
    name: 'Runs in time order',
    summary:
      timeSummary(path, all) +
      (hasLoad
        ? ' Below: CPUs that others, or the hypervisor, took meanwhile.'
        : ''),
    panels: () => timePanels(lines, all, path, highlighted, hasLoad),
    table: {
      caption: 'Runs in time order, the first 500',
      columns: [
        { name: 'At', isNumber: true },
        'Arm',
        ...numberColumns(
          'Block',
          'Over the median',
          'Others, CPUs',
          'Steal, CPUs',
        ),
      ],
      rows: all
        .slice(0, 500)
        .map((m) => [
          quantity(m.at, 's'),
          lines[m.arm]?.name ?? '',
          m.block,
          change(m.ratio),
          m.foreign === null ? null : fixed(m.foreign, 2),
          m.steal === null ? null : fixed(m.steal, 2),
        ]),
    },
  };
}

/** The axis of the time since an experiment began, s. */
export const TIME_AXIS: Axis = {
  title: 'time since the start',
  hasZero: true,
  label: (s) => quantity(s, 's'),
};

function timePanels(
  lines: readonly ArmLine[],
  all: readonly Moment[],
  path: readonly [number, number][],
  highlighted: string | null,
  hasLoad: boolean,
): Panel[] {
  const far =
    Math.max(0.02, ...all.map((m) => Math.abs(Math.log(m.ratio)))) * 1.05;
  const level: Panel = {
    height: 200,
    x: TIME_AXIS,
    y: ratioAxis('change against the median of the arm', [
      Math.exp(-far),
      Math.exp(far),
    ]),
    series: [
      ...lines.map((line, arm) => runSeries(line, arm, all, highlighted)),
      {
        name: 'running median',
        line: 'straight',
        size: 0,
        colour: COLOURS.text,
        points: path.map(([x, y]) => ({ x, y })),
      },
    ],
  };
  if (!hasLoad) return [level];
  return [
    level,
    {
      height: 60,
      x: TIME_AXIS,
      y: { title: 'CPUs taken meanwhile', hasZero: true },
      series: [
        loadSeries(
          'taken by others',
          seriesColour(1),
          '',
          all,
          (m) => m.foreign,
        ),
        loadSeries(
          'taken by the hypervisor',
          seriesColour(3),
          '6 4',
          all,
          (m) => m.steal,
        ),
      ],
    },
  ];
}

/** The look of an arm's runs, which may be highlighted. */
function runLook(
  line: ArmLine,
  arm: number,
  highlighted: string | null,
): Look & { size: number; opacity: number } {
  const plain = { size: 3, opacity: 0.75, colour: COLOURS.neutral };
  if (highlighted === null)
    return { ...plain, ...seriesLook(arm), colour: armColour(line) };
  return line.name === highlighted
    ? { size: 5, opacity: 1, shape: 'diamond', colour: armColour(line) }
    : { ...plain, opacity: 0.25 };
}

function runSeries(
  line: ArmLine,
  arm: number,
  all: readonly Moment[],
  highlighted: string | null,
): Series {
  return {
    ...(isLeftOut(line.standing) ? {} : { name: line.name }),
    ...runLook(line, arm, highlighted),
    points: filterMap(all, (m) =>
      m.arm === arm
        ? { x: m.at, y: m.ratio, tooltip: momentTooltip(m, line.name) }
        : null,
    ),
  };
}

const loadSeries = (
  name: string,
  colour: string,
  dash: string,
  all: readonly Moment[],
  of: (moment: Moment) => number | null,
): Series => ({
  name,
  colour,
  dash,
  line: 'step',
  width: 1.5,
  size: 0,
  points: filterMap(all, (m) => {
    const y = of(m);
    return y === null ? null : { x: m.at, y };
  }),
});

function momentTooltip(moment: Moment, arm: string): string {
  const block = moment.block === null ? '' : `, block ${moment.block}`;
  return `${arm}\n${change(moment.ratio)} against its median\n${quantity(moment.at, 's')} after the start${block}`;
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
  const { ends: _, ...x } = valueAxis(
    lines.flatMap((line) => line.dots.map((d) => d.value)),
    metricName(record),
    unit,
  );
  return {
    name: 'The distribution',
    summary:
      `The share of runs up to a value: every run is a step, so that tails show as they are. ${lines.length > MAX_CURVES ? `${MAX_CURVES} arms are shown, the legend shows others.` : ''}`.trim(),
    hidden: hiddenArms(lines),
    // The axis fits the arms that are shown.
    panel: {
      height: 240,
      x,
      y: {
        title: 'share of runs',
        ends: [0, 1.02],
        label: (share) => percent(share, 0),
      },
      series: lines.map((line, at) => ({
        name: line.name,
        ...seriesLook(at),
        colour: armColour(line),
        line: 'step',
        size: line.dots.length <= 40 ? 2 : 0,
        points: cumulativeSteps(line.dots.map((d) => d.value)).map(
          ([x, y]) => ({
            x,
            y,
            tooltip: `${line.name}\n${percent(y, 0)} up to ${quantity(x, unit)}`,
          }),
        ),
      })),
    },
  };
}

/** All but the baseline, the best and the next ones by cost. */
const hiddenArms = (lines: readonly ArmLine[]): string[] =>
  [...lines]
    .sort((a, b) => rank(a) - rank(b))
    .slice(MAX_CURVES)
    .map((line) => line.name);

const rank = (line: ArmLine): number =>
  line.standing === 'baseline' || line.isBest
    ? 0
    : line.standing === 'eliminated' || line.standing === 'invalid'
      ? 2
      : 1;
