// The parts of a chart before it is drawn: axes with titles, named rows, series of points with
// intervals, rules. Colours are CSS variables, so that dark mode, paper and forced colours need no
// redrawing.

import { visible } from './dom';
import { finite } from './numbers';
import {
  decadeTicks,
  evenTicks,
  factorLabel,
  ratioLabel,
  ratioTicks,
} from './scales';

export const COLOURS = {
  text: 'var(--text)',
  muted: 'var(--muted)',
  background: 'var(--background)',
  better: 'var(--better)',
  worse: 'var(--worse)',
  neutral: 'var(--neutral)',
} as const;

const SERIES = 8;

/** The colour of a series of that number. */
export const seriesColour = (at: number): string =>
  `var(--series-${(at % SERIES) + 1})`;

export type Shape = 'circle' | 'square' | 'triangle' | 'diamond';

/** How a datum is drawn; a point takes missing values from its series. */
export interface Look {
  colour?: string;
  shape?: Shape;
  isHollow?: boolean;
  /** Degrees clockwise. */
  turn?: number;
}

export interface Point extends Look {
  x: number;
  /** Null interrupts a line. */
  y: number | null;
  low?: number | null;
  high?: number | null;
  /** The value that its colour shows. */
  value?: number;
  /** The text of its tooltip; points without one are not stops for the keyboard. */
  tooltip?: string;
  /** A sign beside its dot. */
  sign?: string;
  /** The action of a click or Enter; the table must offer the same. */
  pick?: () => void;
}

export interface Series extends Look {
  /** Its name in the legend. */
  name?: string;
  points: readonly Point[];
  line?: 'straight' | 'step';
  dash?: string;
  width?: number;
  /** Radius of dots, pixels; 0 draws none. */
  size?: number;
  opacity?: number;
  /** The axis along which `low` and `high` are drawn, and as what. */
  interval?: 'x' | 'y';
  thickness?: number;
  /** Draws intervals along y as one band: bars of many points hide each other. */
  isBand?: boolean;
  /** Boxes in rows: bars from zero or `low`, or cells of a grid. */
  box?: 'bar' | 'cell';
}

/** A dashed line on which both coordinates are equal. */
export const diagonal = (from: number, to: number): Series => ({
  line: 'straight',
  dash: '4 3',
  width: 1,
  size: 0,
  colour: COLOURS.muted,
  points: [from, to].map((at) => ({ x: at, y: at })),
});

export interface Axis {
  /** What it measures, with its unit if labels have none. */
  title: string;
  type?: 'linear' | 'log' | 'utc';
  /** Its ends; by default those of the points. */
  ends?: readonly [number, number];
  /** Must zero be on it? */
  hasZero?: boolean;
  /** Values to label between two, at most this many. */
  ticks?: (low: number, high: number, most: number) => number[];
  label?: (value: number, places?: number) => string;
}

/** An axis of ratios, labelled as changes; as factors if it spans a large one. */
export const ratioAxis = (
  title: string,
  ends: readonly [number, number],
): Axis => ({
  title,
  type: 'log',
  ends,
  ticks: ratioTicks,
  label: ends[1] > 5 || ends[0] < 1 / 5 ? factorLabel : ratioLabel,
});

/** Named rows from the top: row 0 first. Values between rows stay free for dots. */
export interface Rows {
  /** What a row is. */
  title: string;
  names: readonly string[];
  /** Words at the right of each row; short ones if there is little room. */
  words?: readonly (string | readonly [long: string, short: string])[];
}

export interface Rule {
  x?: number;
  y?: number;
  label?: string;
  dash?: string;
}

export interface Panel {
  /** Height between the axes, pixels. */
  height: number;
  x: Axis;
  y: Axis | Rows;
  series: readonly Series[];
  rules?: readonly Rule[];
  /** A stretch of x in which differences do not matter. */
  band?: readonly [number, number];
}

/** The panels of a plan in this many pixels. */
export const panelsOf = (
  plan: { panel?: Panel; panels?: (width: number) => readonly Panel[] },
  width: number,
): readonly Panel[] => plan.panels?.(width) ?? (plan.panel ? [plan.panel] : []);

/** Measures the width of a text, pixels. */
export type Measure = (text: string) => number;

const DASHES = ['', '6 4', '2 3', '8 3 2 3', '12 4', '2 5', '8 2 2 2', '5 2'];
const SHAPES: readonly Shape[] = ['circle', 'square', 'triangle', 'diamond'];

/** The look of a series by its number: colours, shapes and dashes repeat with different periods. */
export const seriesLook = (
  at: number,
): Required<Pick<Series, 'colour' | 'shape' | 'isHollow' | 'dash'>> => ({
  colour: seriesColour(at),
  shape: SHAPES[at % SHAPES.length]!,
  isHollow: at % (2 * SHAPES.length) >= SHAPES.length,
  dash: DASHES[(at + Math.floor(at / SERIES)) % DASHES.length]!,
});

/** Marks of a row closer than this factor overlap. */
const OVERLAP = 1.1;

/** Moves marks of a row that would hide each other apart, up and down from its middle. */
export const separateMarks = (series: readonly Series[]): Series[] =>
  series.map((one, at) => ({
    ...one,
    points: one.points.map((p) => {
      const near = series.map(({ points }) =>
        points.some(
          ({ x, y }) => y === p.y && Math.max(x / p.x, p.x / x) < OVERLAP,
        ),
      );
      const before = near.slice(0, at).filter(Boolean).length;
      const all = near.filter(Boolean).length;
      return { ...p, y: p.y! + (before - (all - 1) / 2) * 0.4 };
    }),
  }));

export const isRows = (axis: Axis | Rows): axis is Rows => 'names' in axis;

/** The values that an axis must hold. */
export function valuesOf(panel: Panel, along: 'x' | 'y'): number[] {
  return panel.series
    .flatMap((series) =>
      series.points.flatMap((p) => [
        p[along],
        ...(series.interval === along ? [p.low, p.high] : []),
      ]),
    )
    .filter(finite);
}

/** The ends of an axis, a little apart from the outermost values. */
export function endsOf(
  axis: Axis,
  values: readonly number[],
): [number, number] {
  if (axis.ends) return [axis.ends[0], axis.ends[1]];
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (axis.type === 'log' && value <= 0) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  if (!(low <= high)) return axis.type === 'log' ? [1, 10] : [0, 1];
  if (axis.type === 'log') {
    const margin = Math.max(1.02, (high / low) ** 0.04);
    return [low / margin, high * margin];
  }
  // Records of one second have an axis of a minute.
  const margin =
    axis.type === 'utc'
      ? Math.max((high - low) * 0.04, 3e4)
      : (high - low) * 0.04 || Math.abs(high) * 0.02 || 1;
  if (!axis.hasZero) return [low - margin, high + margin];
  return [
    low < 0 ? low - margin : 0,
    high > 0 ? high + Math.max(margin, high * 0.04) : 0,
  ];
}

/** The labels of ticks; of equal neighbours only the last has one. */
export function tickLabels(axis: Axis, ticks: readonly number[]): string[] {
  const labels = ticks.map((tick) => labelOf(axis, tick, ticks));
  return labels.map((label, at) => (label === labels[at + 1] ? '' : label));
}

/** The label of a value with the significant digits in which even `ticks` differ, at least three. */
export function labelOf(
  axis: Axis,
  value: number,
  ticks: readonly number[] = [],
): string {
  const digits = (size: number): number => Math.floor(Math.log10(size) + 1e-9);
  const [first = 0, second = 0] = ticks;
  const most = Math.max(...ticks.map(Math.abs));
  const places = digits(most) - digits(second - first) + 1;
  const isFine = axis.type !== 'log' && places > 3;
  return visible((axis.label ?? String)(value, isFine ? places : 3));
}

export function ticksOf(
  axis: Axis,
  ends: [number, number],
  most: number,
): number[] {
  const ticks = axis.ticks ?? (axis.type === 'log' ? decadeTicks : evenTicks);
  return ticks(ends[0], ends[1], most);
}

/** As many labels as fit next to each other; one alone does not show a scale, so that on a phone
 * the first and the last of finer ticks may stand for all. */
export function ticksThatFit(
  axis: Axis,
  ends: [number, number],
  width: number,
  measure: Measure,
): number[] {
  const to = axis.type === 'log' ? Math.log : Number;
  const place = (value: number): number =>
    ((to(value) - to(ends[0])) / (to(ends[1]) - to(ends[0]))) * width;
  const fits = (ticks: readonly number[]): boolean =>
    ticks.every((tick, at) => {
      const next = ticks[at + 1];
      if (next === undefined) return true;
      const half =
        (measure(labelOf(axis, tick, ticks)) +
          measure(labelOf(axis, next, ticks))) /
        2;
      return place(next) - place(tick) > half + 6;
    });
  const most = Math.max(3, Math.floor(width / 44));
  for (let few = most; few > 1; few -= 1) {
    const ticks = ticksOf(axis, ends, few);
    if (ticks.length > 1 && fits(ticks)) return ticks;
  }
  for (let many = 3; many <= MAX_FINE_TICKS; many += 1) {
    const ticks = ticksOf(axis, ends, many);
    const outer = [ticks[0]!, ticks.at(-1)!];
    if (ticks.length > 1 && fits(outer)) return outer;
  }
  return ticksOf(axis, ends, most).slice(0, 1);
}

/** Ticks of which a narrow axis labels the first and the last. */
const MAX_FINE_TICKS = 12;
