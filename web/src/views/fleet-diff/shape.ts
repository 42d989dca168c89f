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

/** Does the interval exclude 1? `null` if there is none. */
export function differs(figure: FigureChange): boolean | null {
  const { low, high } = figure;
  return finite(low) && finite(high) ? low > 1 || high < 1 : null;
}
