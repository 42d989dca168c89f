// Two groups of machines: which figures changed most.

import type { FigureChange } from './record';

/** Largest ratios first, up or down alike; unknown ones last. */
export function largestFirst(figures: readonly FigureChange[]): FigureChange[] {
  return [...figures].sort((a, b) => size(b.ratio) - size(a.ratio));
}

const size = (ratio: number | null): number =>
  ratio === null || !(ratio > 0) ? -1 : Math.abs(Math.log(ratio));

/** Does the interval exclude 1? `null` if there is none. */
export function differs(figure: FigureChange): boolean | null {
  if (figure.low === null || figure.high === null) return null;
  return figure.low > 1 || figure.high < 1;
}
