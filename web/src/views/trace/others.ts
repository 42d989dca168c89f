// The use of CPUs by other programs while no traced thread ran there.

import type { CpuSpans } from '../../records';
import type { Scene } from './scene';

/** Shares of a CPU within one of the record's spans. */
export interface SpanShares {
  own: number;
  others: number;
}

/** The shares of the span at a time; null if the others' share is unknown. */
export function findShares(
  { spans }: Pick<Scene, 'spans'>,
  cpu: CpuSpans | undefined,
  time: number,
): SpanShares | null {
  const at = spans ? Math.floor(time / spans.lengthNs) : -1;
  const others = cpu?.foreign?.[at];
  if (others === undefined) return null;
  return { own: cpu?.own?.[at] ?? 0, others };
}

/** The share of other programs in the time that traced threads left, 0 to 1. */
export function shareOfRest({ own, others }: SpanShares): number {
  return others > 0 ? Math.min(1, others / Math.max(1 - own, others)) : 0;
}

/** The spans of the CPU in a row. */
export const spansOfRow = (
  { spans, cpus }: Pick<Scene, 'spans' | 'cpus'>,
  row: number,
): CpuSpans | undefined => spans?.cpus.find(({ cpu }) => cpu === cpus[row]);

/** Is the others' share of any CPU known? */
export const knowsOthers = ({ spans }: Pick<Scene, 'spans'>): boolean =>
  spans?.cpus.some(({ foreign }) => (foreign?.length ?? 0) > 0) ?? false;
