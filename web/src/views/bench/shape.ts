// The data of a bench's drawings.

import { bytes, count, fixed, percent, quantity, withSpan } from '../../format';
import { filterMap } from '../../lists';
import { finite, mapNumber, knownEnds } from '../../numbers';
import type { Bench, BenchKernel, Estimate, Maybe } from '../../records';

export interface Speed {
  threads: number;
  value: number;
  low: number | null;
  high: number | null;
  cell: string | null | undefined;
}

/** Speed-ups of a placement over threads. */
export interface SpeedSeries {
  family: string;
  points: Speed[];
}

/** One series per placement; for kernels whose question is `scaling`. */
export function speedSeries(kernel: BenchKernel): SpeedSeries[] {
  const found = new Map<string, Speed[]>();
  for (const cell of kernel.cells ?? []) {
    const value = cell.name === kernel.baseline ? 1 : cell.speed_up?.value;
    if (!finite(value) || !finite(cell.threads) || cell.invalid) continue;
    const family = cell.family ?? cell.placement ?? '';
    found.set(family, [
      ...(found.get(family) ?? []),
      {
        threads: cell.threads,
        value,
        ...knownEnds(cell.speed_up?.low, cell.speed_up?.high, finite),
        cell: cell.name,
      },
    ]);
  }
  return [...found].map(([family, points]) => ({
    family,
    points: points.sort((a, b) => a.threads - b.threads),
  }));
}

/** The points, interrupted where more than a doubling of threads was not measured. */
export const withGaps = (
  points: readonly Speed[],
): (Omit<Speed, 'value'> & { value: number | null })[] =>
  points.flatMap((point, at) => {
    const next = points[at + 1]?.threads ?? 0;
    return next > 2 * point.threads
      ? [point, { ...point, value: null, low: null, high: null }]
      : [point];
  });

/** Has a placement of the kernel more than one number of threads? */
export const hasScalingChart = (kernel: BenchKernel): boolean =>
  kernel.question === 'scaling' &&
  speedSeries(kernel).some((c) => c.points.length > 1);

/** The numbers of threads that were measured, ascending. */
export const countThreads = ({ cells }: BenchKernel): number[] =>
  [...new Set(filterMap(cells ?? [], ({ threads }) => threads ?? null))].sort(
    (a, b) => a - b,
  );

/** What speed-ups are relative to, in words: "1 thread at os-default". */
export function describeBaseline(kernel: Maybe<BenchKernel>): string {
  const cell = kernel?.cells?.find(({ name }) => name === kernel.baseline);
  return finite(cell?.threads)
    ? `${count(cell.threads, 'thread')} at ${cell.family ?? cell.placement}`
    : (kernel?.baseline ?? 'the baseline');
}

/** A placement of a number of threads. */
export type RankedPlacement = Omit<Speed, 'cell'> & { placement: string };

/** The placements of the number of threads at which they differ most, or else of the most threads;
 * the best first. */
export function rankPlacements(
  kernel: BenchKernel,
): [threads: number, placements: RankedPlacement[]] {
  const threads =
    kernel.placement_difference?.threads ?? countThreads(kernel).at(-1) ?? 0;
  const all = filterMap(kernel.cells ?? [], (cell): RankedPlacement | null => {
    const { value, low, high } = cell.speed_up ?? {};
    return cell.threads === threads && finite(value) && !cell.invalid
      ? {
          threads,
          placement: cell.placement ?? '',
          value,
          ...knownEnds(low, high, finite),
        }
      : null;
  });
  return [threads, all.sort((a, b) => b.value - a.value)];
}

export function scalingSummary(kernel: BenchKernel): string {
  const last = speedSeries(kernel).map((c) => ({
    family: c.family,
    end: c.points.at(-1)!,
  }));
  const best = [...last].sort((a, b) => b.end.value - a.end.value)[0];
  if (!best) return '';
  const { threads, value, low, high } = best.end;
  const times = withSpan(value, low, high, (v) => fixed(v, 2));
  return `${count(threads, 'thread')} at ${best.family} do ${times} times the work of ${describeBaseline(kernel)}.`;
}

/** The throughput that SMT adds, for each kernel for which it was measured. */
export function smtYields(record: Bench): {
  kernel: string;
  value: number;
  low: number | null;
  high: number | null;
}[] {
  return filterMap(record.kernels ?? [], (k) => {
    const y = k.smt_yield;
    if (!finite(y?.value)) return null;
    return {
      kernel:
        k.question === 'smt_machine'
          ? `${k.kernel}, all cores`
          : k.question === 'smt_core'
            ? `${k.kernel}, one core`
            : (k.kernel ?? ''),
      value: y.value,
      ...knownEnds(y.low, y.high, finite),
    };
  });
}

const estimateText = (
  estimate: Maybe<Estimate>,
  text: (value: number) => string,
): string | null =>
  withSpan(estimate?.value, estimate?.low, estimate?.high, text);

/** The rows of a kernel's table. */
export function cellRows(kernel: BenchKernel): (string | number | null)[][] {
  return (kernel.cells ?? []).map((cell) => [
    cell.name +
      (cell.name === kernel.baseline ? ' (baseline)' : '') +
      (cell.invalid ? ` (invalid: ${cell.invalid})` : ''),
    cell.cpus ?? null,
    estimateText(cell.seconds, (v) => quantity(v, 's')),
    estimateText(cell.rate, (v) =>
      v.toLocaleString('en-US', { maximumSignificantDigits: 4 }),
    ),
    estimateText(cell.bytes_per_s, (v) => `${bytes(v)}/s`),
    estimateText(cell.speed_up, (v) => `×${fixed(v, 3)}`),
    mapNumber(cell.efficiency, (efficiency) => percent(efficiency, 0)),
  ]);
}

const QUESTIONS: Readonly<Record<string, string>> = {
  smt_core: 'one CPU of a core against all of them',
  smt_machine: 'one thread per core against one per CPU',
  scaling: 'threads and placements',
  builds: 'instruction sets',
  sizes: 'sizes',
};

export const questionText = (question: BenchKernel['question']): string =>
  QUESTIONS[question ?? ''] ?? question ?? '';
