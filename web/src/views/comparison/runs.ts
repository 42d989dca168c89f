// The runs of a comparison for its drawings: spread across, in time order, cumulated.

import { change, count } from '../../format';
import { filterMap } from '../../lists';
import { ascending, median } from '../../numbers';
import type { ArmLine } from './shape';

/**
 * Positions of dots across their lane so that neighbours do not hide each other: −1 to 1, the same
 * for the same values. Positions along are in 0 to 1, dots are `width` wide, and at most `most` are
 * next to each other.
 */
export function spreadDots(
  places: readonly number[],
  width: number,
  most: number,
): number[] {
  const filled = new Map<number, number>();
  const levels = places.map((place) => {
    const bin = Math.round(place / width);
    const level = filled.get(bin) ?? 0;
    filled.set(bin, level + 1);
    return level;
  });
  const half = Math.max(
    Math.ceil((Math.max(1, ...filled.values()) - 1) / 2),
    Math.ceil(most / 2),
  );
  return levels.map(
    (level) => (level % 2 === 0 ? level / 2 : -(level + 1) / 2) / half,
  );
}

/** The dots of all arms in a sentence. */
export function dotsSummary(lines: readonly ArmLine[]): string {
  const runs = lines.reduce((sum, line) => sum + line.dots.length, 0);
  return `${count(runs, 'run')} of ${count(lines.filter((l) => l.dots.length > 0).length, 'arm')}, a dot each.`;
}

export interface Moment {
  at: number;
  /** Relative to the median of the arm: 1 is its usual value. */
  ratio: number;
  value: number;
  arm: number;
  block: number | null;
  foreign: number | null;
  steal: number | null;
}

/** All runs in time order, each relative to its arm's median, so that drift shows despite differences
 * of arms. */
export function runsInTime(lines: readonly ArmLine[]): Moment[] {
  const all = lines.flatMap((line, arm) => {
    const middle = median(line.dots.map((d) => d.cost));
    if (!middle) return [];
    return filterMap(line.dots, (d) =>
      d.at_s === null || d.cost <= 0
        ? null
        : {
            at: d.at_s,
            ratio: d.cost / middle,
            value: d.value,
            arm,
            block: d.block,
            foreign: d.foreign,
            steal: d.steal,
          },
    );
  });
  return all.sort((a, b) => a.at - b.at);
}

/** The running median over neighbours in time, which shows drift; empty if there are too few runs. */
export function runningMedian(all: readonly Moment[]): [number, number][] {
  const reach = Math.max(3, Math.round(all.length / 40));
  if (all.length < 4 * reach) return [];
  return all.map((moment, at) => {
    const near = all.slice(Math.max(0, at - reach), at + reach + 1);
    return [moment.at, median(near.map((m) => m.ratio))!];
  });
}

/** Time order in a sentence: how far the level moved. */
export function timeSummary(
  path: readonly [number, number][],
  all: readonly Moment[],
): string {
  const shared = `${count(all.length, 'run')}, each over its arm's median`;
  if (path.length === 0) return `${shared}; too few to detect a drift.`;
  const levels = path.map(([, level]) => level);
  return `${shared}. The running median moves between ${change(Math.min(...levels))} and ${change(Math.max(...levels))}.`;
}

/** Steps of the share of runs up to a value. */
export function cumulativeSteps(values: readonly number[]): [number, number][] {
  const sorted = ascending(values);
  const first = sorted[0];
  return first === undefined
    ? []
    : [
        [first, 0],
        ...sorted.map((value, at): [number, number] => [
          value,
          (at + 1) / sorted.length,
        ]),
      ];
}
