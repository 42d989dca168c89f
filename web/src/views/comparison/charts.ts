// The drawings of a comparison.

import type { ChartPlan } from '../../chart';
import { fixed, quantity } from '../../format';
import { filterMap, groupBy } from '../../lists';
import { finite } from '../../numbers';
import type { Axis, Look, Panel, Series } from '../../plot';
import { COLOURS, ratioAxis, seriesColour } from '../../plot';
import type { Comparison } from '../../records';
import { ratioRange } from '../../scales';
import { numberColumns, withoutEmpty } from '../../table';
import type { RatioLine } from './ratios';
import type { ArmLine, Standing } from './shape';
import {
  ALONE,
  figureText,
  isOtherThanMedians,
  ratioLines,
  ratioSummary,
  withCompanions,
} from './ratios';
import { contrastRows, QUANTILE_COLUMNS, quantileRows } from './rows';
import { dotsSummary, spreadDots } from './runs';
import { isLeftOut, isRate } from './shape';

/** Series numbers whose colours the arms have in all charts. Vermilion means "worse", and the baseline
 * is grey. */
const ARM_SERIES = [0, 2, 3, 4, 5, 7] as const;

export const armColour = ({
  colour,
  standing,
}: Pick<ArmLine, 'colour' | 'standing'>): string => {
  if (standing === 'slower') return COLOURS.worse;
  return colour !== null && colour < ARM_SERIES.length
    ? seriesColour(ARM_SERIES[colour]!)
    : COLOURS.neutral;
};

/** The colour in charts with a row for each arm; without a verdict it is neither better nor worse. */
const rowColour = (line: Pick<ArmLine, 'colour' | 'standing'>): string =>
  line.standing === 'undecided' ? COLOURS.neutral : armColour(line);

/** The look of a point by standing; position and word show the same. */
const LOOKS: Readonly<Record<Standing, Look>> = {
  baseline: { shape: 'diamond' },
  faster: { shape: 'triangle', turn: -90 },
  slower: { shape: 'triangle', turn: 90 },
  same: { shape: 'square' },
  undecided: { isHollow: true },
  eliminated: { shape: 'square', isHollow: true },
  invalid: { shape: 'diamond', isHollow: true },
  unknown: { isHollow: true },
};

/** The name of the metric, as the record has it. */
export const metricName = ({ metric }: Comparison): string =>
  metric?.label || metric?.name || 'the metric';

/** Every arm over the baseline; null without contrasts. */
export function ratioPlan(
  record: Comparison,
  lines: readonly ArmLine[],
): ChartPlan | null {
  const isUp = isRate(record);
  const rows = withCompanions(record, ratioLines(lines, isUp), lines);
  if (rows.length === 0) return null;
  const effect = record.plan?.min_effect ?? 0;
  const baseline = record.baseline ?? 'the baseline';
  const label = metricName(record);
  const joint = record.joint
    ? 'The joint cost of all programs, since placing one may slow another. '
    : '';
  const band = `${joint}The band is ±${fixed(effect * 100, effect < 0.001 ? 2 : 1)} %: within it, arms are the same.`;
  // In the order of the verdict: the best arm, what companions change, the others.
  const rank = ([against, own]: [string, RatioLine[]]): number =>
    own.some(isBest) ? 0 : against === ALONE ? 1 : 2;
  const groups = [...groupBy(rows, (r) => r.against ?? baseline)].sort(
    (a, b) => rank(a) - rank(b),
  );
  const ends = ratioRange(
    rows.flatMap((r) => [r.ratio, r.low ?? r.ratio, r.high ?? r.ratio]),
    Math.max(0.01, effect * 1.5),
  );
  return {
    name: `Change against ${groups.length > 1 ? 'each baseline' : baseline}`,
    summary: `${groups.map(([against, own]) => ratioSummary(own, `${label} against ${against}, ${isUp ? 'right' : 'left'} is better`)).join(' ')}${effect > 0 ? ` ${band}` : ''}`,
    // The rows say the rest.
    caption: effect > 0 ? band : joint,
    panels: () =>
      groups.map(([against, own]) => ({
        height: 30 * own.length,
        x: ratioAxis(
          isUp
            ? `← worse      ${label}      better →`
            : `← better      ${label}      worse →`,
          ends,
        ),
        y: {
          title: 'Arm',
          names: own.map((r) => nameWithStar(r)),
          words: own.map((r) => [`${figureText(r)}  ${r.word}`, r.word]),
        },
        series: [ratioSeries(own, isUp)],
        rules: [{ x: 1, label: against }],
        ...(effect > 0
          ? { band: [1 / (1 + effect), 1 + effect] as const }
          : {}),
      })),
    table: {
      caption: `${label} against ${groups.length > 1 ? 'the baseline of each arm' : baseline}`,
      columns: [
        'Arm',
        ...(groups.length > 1 ? ['Against'] : []),
        ...numberColumns('Change', 'Interval'),
        'Verdict',
      ],
      rows: groups.flatMap(([against, own]) =>
        own.map((r) => [
          r.name,
          ...(groups.length > 1 ? [against] : []),
          r.change,
          r.interval || null,
          r.word,
        ]),
      ),
    },
  };
}

/** The table of contrasts, with figures that the ratio plot does not show. */
export const contrastTable = (
  lines: readonly ArmLine[],
): NonNullable<ChartPlan['table']> =>
  withoutEmpty({
    caption:
      'Arms against the baseline; claims hold together, intervals each at its own level; p-values are over all arms and looks',
    columns: [
      'Arm',
      { name: 'Typical', isNumber: true },
      'Verdict',
      ...numberColumns(
        'p, adjusted',
        'CPU time',
        'Queueing for CPUs',
        'Blocking and parallelism',
        'Mean',
        '90th percentile',
        'Spread',
        'By CPUs used by others',
      ),
      'Depends on',
    ],
    rows: contrastRows(lines),
  });

const isBest = (line: { isBest: boolean }): boolean => line.isBest;

const nameWithStar = (line: { name: string; isBest: boolean }): string =>
  line.isBest ? `${line.name} ★` : line.name;

function ratioSeries(rows: readonly RatioLine[], isUp: boolean): Series {
  return {
    interval: 'x',
    size: 6,
    points: rows.map((r, at) => {
      const { turn = 0, ...look } = LOOKS[r.standing];
      return {
        ...look,
        colour: rowColour(r),
        turn: isUp ? -turn : turn,
        x: r.ratio,
        y: at,
        low: r.low,
        high: r.high,
        tooltip: `${r.name}\n${r.change}${r.interval ? ` (${r.interval})` : ''}\n${r.word}`,
      };
    }),
  };
}

/** The scale of values along x: linear, or logarithmic if they span more than a factor of 5. */
export function valueAxis(
  values: readonly number[],
  title: string,
  unit: string,
): Axis {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!(low <= high)) [low, high] = [0, 1];
  const isLog = low > 0 && high / low > 5;
  const margin = (high - low) * 0.03 || Math.abs(high) * 0.01 || 1;
  const factor = (high / low) ** 0.03;
  return {
    title,
    type: isLog ? 'log' : 'linear',
    ends: isLog ? [low / factor, high * factor] : [low - margin, high + margin],
    label: (value, places) => quantity(value, unit, places),
  };
}

/** Are the intervals of medians known? A record has them at the end. */
export const hasIntervals = (lines: readonly ArmLine[]): boolean =>
  lines.some(({ low }) => low !== null);

/** Every run of every arm; null without runs. */
export function dotsPlan(
  record: Comparison,
  all: readonly ArmLine[],
): ChartPlan | null {
  const lines = all.filter((line) => line.dots.length > 0);
  if (lines.length === 0) return null;
  const unit = record.metric?.unit ?? '';
  const lane = lines.length <= 4 ? 64 : lines.length <= 12 ? 48 : 26;
  // The axis fits the arms that were not left out: those may be so far off that the others'
  // differences vanish.
  const kept = lines.filter((line) => !isLeftOut(line.standing));
  const x = valueAxis(
    (kept.length > 0 ? kept : lines).flatMap((line) => [
      ...line.dots.map((d) => d.value),
      ...[line.low, line.high].filter(finite),
    ]),
    metricName(record),
    unit,
  );
  const [from, to] = x.ends!;
  const isOn = (value: number): boolean => value >= from && value <= to;
  const onScale = lines.map((line) => ({
    ...line,
    dots: line.dots.filter(({ value }) => isOn(value)),
    median: line.median !== null && isOn(line.median) ? line.median : null,
  }));
  const isCut = onScale.some(
    (line, at) => line.dots.length < lines[at]!.dots.length,
  );
  const hasScreening = lines.some((line) =>
    line.dots.some((d) => d.isScreening),
  );
  return {
    name: 'Every run',
    summary: `${dotsSummary(lines)} The diamond below is the median${hasIntervals(lines) ? ' with its 95 % interval' : ''}.${hasScreening ? ' Hollow: runs of the screening.' : ''}${isCut ? ' The axis fits the arms that were measured to the end; ◂ and ▸ mark medians beyond it.' : ''}${isOtherThanMedians(lines) ? ' Changes compare neighbouring runs; medians are of all runs.' : ''}`,
    panels: (width): Panel[] => [
      {
        height: lane * lines.length,
        x,
        y: {
          title: 'Arm',
          names: lines.map(laneName),
          words: lines.map(({ median }) => {
            const word = median === null ? '' : quantity(median, unit);
            const way = (median ?? from) < from ? '◂' : '▸';
            const said =
              median === null || isOn(median) ? word : `${way} ${word}`;
            return said;
          }),
        },
        series: [
          ...onScale.map((line, row) =>
            runSeries(line, row, x, lane, width, unit),
          ),
          medianSeries(onScale),
        ],
      },
    ],
    table: {
      caption: 'Runs of each arm',
      columns: QUANTILE_COLUMNS,
      rows: quantileRows(lines, unit),
    },
  };
}

function laneName(line: ArmLine): string {
  return isLeftOut(line.standing)
    ? `${line.name} (${line.word})`
    : nameWithStar(line);
}

/** Share of a row below its runs, for the median; and half of the height of its runs. */
const MEDIAN_SHARE = 0.26;
const RUNS_HALF_HEIGHT = (1 - MEDIAN_SHARE) / 2 - 0.05;

/** Approximate share of a chart's width beside the names of its rows. */
const PLOT_SHARE = 0.8;

/** The runs of an arm, spread vertically if they would cover each other. */
function runSeries(
  line: ArmLine,
  row: number,
  x: Axis,
  lane: number,
  width: number,
  unit: string,
): Series {
  const size = lane >= 48 ? 6 : 4.5;
  const half = RUNS_HALF_HEIGHT;
  const to = x.type === 'log' ? Math.log : Number;
  const [low, high] = x.ends!.map(to) as [number, number];
  const across = spreadDots(
    line.dots.map((d) => (to(d.value) - low) / (high - low || 1)),
    (size + 1) / (width * PLOT_SHARE),
    Math.floor((lane * 2 * half) / (size + 1)),
  );
  return {
    size: size / 2,
    opacity: 0.8,
    colour: rowColour(line),
    points: line.dots.map((d, at) => ({
      x: d.value,
      y: row - MEDIAN_SHARE / 2 + across[at]! * half,
      isHollow: d.isScreening,
      tooltip: `${line.name}\n${quantity(d.value, unit)}${d.block === null ? '' : `, block ${d.block}`}`,
    })),
  };
}

/** Medians with their intervals, below the runs: around them readers would mistake an interval
 * for quartiles. */
const medianSeries = (lines: readonly ArmLine[]): Series => ({
  interval: 'x',
  size: 5,
  shape: 'diamond',
  colour: COLOURS.text,
  points: filterMap(lines, (line, row) =>
    line.median === null
      ? null
      : {
          x: line.median,
          y: row + 0.5 - MEDIAN_SHARE / 2,
          low: line.low,
          high: line.high,
        },
  ),
});
