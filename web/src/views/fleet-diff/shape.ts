// Two groups of machines: which figures changed most.

import { count, digits } from '../../format';
import { finite, positive } from '../../numbers';
import type {
  FleetDiff,
  FleetFigureChange as FigureChange,
  FleetSide,
  Maybe,
} from '../../records';

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

/** Which direction of a figure is better, behind its name. */
export const betterMark = ({ better }: FigureChange): string =>
  better === 'higher' ? ' ↑' : better === 'lower' ? ' ↓' : '';

/** "A: before (12 nodes). B: after (8 nodes). Both: EPYC." */
export function describeSides({ a, b }: FleetDiff): string {
  const isShared = Boolean(a?.group) && a?.group === b?.group;
  const side = (one: Maybe<FleetSide>): string =>
    `${[one?.fleet, !isShared && one?.group].filter(Boolean).join(' / ') || 'one'} (${count(one?.nodes, 'node')})`;
  return `A: ${side(a)}. B: ${side(b)}.${isShared ? ` Both: ${a!.group}.` : ''}`;
}

/** What the drawn intervals are: each figure's own, not corrected for the number of figures. */
export function describeIntervals(figures: readonly FigureChange[]): string {
  const changed = figures.filter((figure) => differs(figure) === true).length;
  const p = figures.map((one) => one.p_adjusted).filter(finite);
  const result =
    changed > 0
      ? `${changed} ${changed === 1 ? 'differs' : 'differ'} by 1 % or more (filled)`
      : `none is shown to differ by 1 % or more${p.length > 0 ? ` (lowest adjusted p ${digits(Math.min(...p), 2)})` : ''}`;
  return `↑ more is better, ↓ less is better. Lines: 95 % interval of each figure alone. Corrected for ${count(figures.length, 'figure')}, ${result}.`;
}
