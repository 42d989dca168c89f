// Two groups of machines: which figures changed most.

import { finite, positive } from '../../numbers';
import type { Maybe, FleetFigureChange as FigureChange } from '../../records';

/** Largest ratios first, up or down alike; unknown ones last. */
export function largestFirst<T extends FigureChange>(
  figures: readonly T[],
): T[] {
  return [...figures].sort((a, b) => changeSize(b.ratio) - changeSize(a.ratio));
}

const changeSize = (ratio: Maybe<number>): number =>
  positive(ratio) ? Math.abs(Math.log(ratio)) : -1;

/** Does it differ, adjusted for the number of figures? `null` without an interval. */
export const differs = ({
  low,
  high,
  differs,
}: FigureChange): boolean | null =>
  finite(low) && finite(high) ? differs === true : null;

/** The figures that differ; if none does, those with the largest ratios. */
export function chooseDrawn<T extends FigureChange>(
  figures: readonly T[],
  most: number,
): T[] {
  const changed = figures.filter((figure) => differs(figure) === true);
  return (changed.length > 0 ? changed : figures).slice(0, most);
}
