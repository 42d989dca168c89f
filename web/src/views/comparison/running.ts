// A running comparison: its progress, and how its intervals narrow. A record has its contrasts at
// the end; until then the page shows the median over the blocks so far, which decides nothing.

import type { ChartPlan } from '../../chart';
import { h } from '../../dom';
import { change, count, seconds, withSpan } from '../../format';
import { filterMap } from '../../lists';
import { ascending, finite, median, mapNumber } from '../../numbers';
import { COLOURS, seriesLook, ratioAxis } from '../../plot';
import type { Arm, Comparison } from '../../records';
import { wholeTicks } from '../../scales';
import { numberColumns } from '../../table';
import { armColour, metricName } from './charts';
import { armLines } from './shape';

export interface Progress {
  /** "confirmation" and the like; empty before the first run. */
  phase: string;
  /** Number of complete blocks of this phase. */
  blocks: number;
  runs: number;
  elapsed: number;
  budget: number | null;
  /** Maximum number of seconds left; null without a limit. */
  left: number | null;
}

/** Reads the progress of a comparison from its runs and limits. */
export function readProgress(record: Comparison): Progress {
  const arms = record.arms ?? [];
  const all = arms.flatMap((arm) => [
    ...(arm.other_runs ?? []),
    ...(arm.runs ?? []),
  ]);
  let [elapsed, last, phase] = [0, -1, ''];
  for (const run of all) {
    const end = (run.at_s ?? 0) + (run.wall_s ?? 0);
    elapsed = Math.max(elapsed, end);
    // Runs of a block that is not yet complete have the phase 'dropped' as well.
    if (run.phase === 'dropped' || end <= last) continue;
    [last, phase] = [end, run.phase ?? ''];
  }
  const runs = arms.reduce((sum, arm) => sum + (arm.runs?.length ?? 0), 0);
  const blocks = new Set(
    arms.flatMap((arm) =>
      filterMap(arm.runs ?? [], (run) =>
        run.phase === phase && finite(run.block) ? run.block : null,
      ),
    ),
  ).size;
  const { budget_s: budget, max_runs: most } = record.plan ?? {};
  const limits = [
    mapNumber(budget, (budget) => budget - elapsed),
    finite(most) && blocks > 0 ? ((most - blocks) * elapsed) / blocks : null,
  ].filter(finite);
  return {
    phase,
    blocks,
    runs,
    elapsed,
    budget: budget ?? null,
    left: limits.length > 0 ? Math.max(0, Math.min(...limits)) : null,
  };
}

/** The line that the terminal shows: "block 12 · 34 s of 60 s · at most 26 s left". */
export function progressWords(now: Progress): string {
  const block = `block ${now.blocks + 1}`;
  const words = [
    now.phase === '' || now.phase === 'confirmation'
      ? block
      : `${now.phase.replace('warmup', 'warm-up')}, ${block}`,
    now.budget === null
      ? seconds(now.elapsed)
      : `${seconds(now.elapsed)} of ${seconds(now.budget)}`,
    count(now.runs, 'run'),
  ];
  if (now.left !== null) words.push(`at most ${seconds(now.left, 2)} left`);
  return words.join(' · ');
}

/** The progress in words, with a bar. */
export function progressBar(record: Comparison): HTMLElement {
  const now = readProgress(record);
  const { elapsed, left } = now;
  const words = progressWords(now);
  return h(
    'p.running',
    left === null
      ? null
      : h('progress', {
          max: 1,
          value: elapsed + left > 0 ? elapsed / (elapsed + left) : 0,
          aria: { label: 'Share of the budget used' },
        }),
    h('span', words),
  );
}

/** Maximum number of blocks at which the interval is drawn. */
const MAX_STEPS = 40;
/** Fewer blocks have no 95 % interval of their median. */
const MIN_BLOCKS = 6;
/** Maximum number of arms that are shown at first. */
const MAX_ARMS = 6;

export interface IntervalStep {
  block: number;
  ratio: number;
  low: number | null;
  high: number | null;
}

/** Ratios of an arm to the baseline in the same block, in the order of the blocks. */
function blockRatios(arm: Arm, baseline: Arm): number[] {
  const of = (one: Arm): Map<number, number> =>
    new Map(
      filterMap(one.runs ?? [], ({ phase, block, metric }) =>
        phase !== 'screening' && finite(block) && finite(metric?.value)
          ? ([block, metric.value] as const)
          : null,
      ),
    );
  const base = of(baseline);
  return filterMap(
    [...of(arm)].sort(([a], [b]) => a - b),
    ([block, value]) => {
      const ratio = value / (base.get(block) ?? 0);
      return finite(ratio) && ratio > 0 ? ratio : null;
    },
  );
}

/** The median of the first ratios and its interval, at some of the blocks. */
export function intervalSteps(ratios: readonly number[]): IntervalStep[] {
  const step = Math.max(1, Math.ceil(ratios.length / MAX_STEPS));
  const steps: IntervalStep[] = [];
  for (let many = ratios.length; many > 0; many -= step) {
    const sorted = ascending(ratios.slice(0, many));
    const rank = medianRank(many);
    steps.push({
      block: many,
      ratio: median(sorted)!,
      low: rank === null ? null : sorted[rank]!,
      high: rank === null ? null : sorted[many - 1 - rank]!,
    });
  }
  return steps.reverse();
}

/** Values below the 95 % interval of a median (order statistics); null of too few. */
function medianRank(many: number): number | null {
  if (many < MIN_BLOCKS) return null;
  // For larger numbers 0.5 to that power underflows; the normal approximation is close.
  if (many > 500) return Math.floor((many - 1.96 * Math.sqrt(many)) / 2);
  let term = 0.5 ** many;
  let below = 0;
  for (let rank = 0; ; rank += 1) {
    below += term;
    if (below > 0.025) return rank - 1;
    term *= (many - rank) / (rank + 1);
  }
}

/** Changes that the axis reaches to both sides, and blocks: an axis that fits the data alone jumps
 * with every block. */
const REACHES = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 3, 9];
const BLOCKS = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

/** The first step that holds a value; beyond the last, the value. */
const stepAbove = (steps: readonly number[], value: number): number =>
  steps.find((step) => step >= value) ?? value;

/** The intervals over the blocks so far; null without any. */
export function intervalPlan(record: Comparison): ChartPlan | null {
  const arms = record.arms ?? [];
  const baseline = arms.find((arm) => arm.name === record.baseline);
  if (!baseline) return null;
  const lines = filterMap(arms, (arm) => {
    const steps =
      arm === baseline ? [] : intervalSteps(blockRatios(arm, baseline));
    return steps.length > 0 ? { name: arm.name ?? '', steps } : null;
  });
  if (lines.length === 0) return null;
  const said = ({ ratio, low, high }: IntervalStep): string =>
    withSpan(ratio, low, high, change)!;
  const last = (steps: readonly IntervalStep[]): string => said(steps.at(-1)!);
  const colours = new Map(armLines(record).map((l) => [l.name, armColour(l)]));
  const axis = `change against ${record.baseline}`;
  const changes = lines.flatMap(({ steps }) =>
    // The axis fits the later blocks: the intervals of the first ones are far wider.
    steps
      .slice(Math.floor(steps.length / 4))
      .flatMap((s) => [s.ratio, s.low ?? s.ratio, s.high ?? s.ratio])
      .map((ratio) => Math.max(ratio, 1 / ratio) - 1),
  );
  const reach = 1 + stepAbove(REACHES, Math.max(...changes));
  const ends = [1 / reach, reach] as const;
  const blocks = Math.max(...lines.map(({ steps }) => steps.at(-1)!.block));
  const inside = (ratio: number): number =>
    Math.min(ends[1], Math.max(ends[0], ratio));
  return {
    name: 'Narrowing, block by block',
    summary: `${metricName(record)} against ${record.baseline}: ${lines
      .slice(0, 3)
      .map(({ name, steps }) => `${name} ${last(steps)}`)
      .join(', ')}.`,
    caption: `The median over the blocks so far, from ${MIN_BLOCKS} blocks on with its 95 % interval, of each arm alone.`,
    hidden: lines.slice(MAX_ARMS).map(({ name }) => name),
    panel: {
      height: 180,
      x: {
        title: 'blocks',
        ends: [0, stepAbove(BLOCKS, blocks)],
        ticks: wholeTicks,
      },
      y: ratioAxis(axis, ends),
      rules: [{ y: 1 }],
      series: lines.map(({ name, steps }, at) => ({
        name,
        ...seriesLook(at),
        colour: colours.get(name) ?? COLOURS.neutral,
        line: 'straight' as const,
        width: 1.5,
        size: 2.5,
        interval: 'y' as const,
        thickness: 1,
        points: steps.map((step) => ({
          x: step.block,
          y: inside(step.ratio),
          low: mapNumber(step.low, inside),
          high: mapNumber(step.high, inside),
          tooltip: `${name}, ${count(step.block, 'block')}
${said(step)}`,
        })),
      })),
    },
    table: {
      caption: `After the blocks so far; 95 % intervals of each arm alone`,
      columns: ['Arm', ...numberColumns('Blocks', 'Change (interval)')],
      rows: lines.map(({ name, steps }) => [
        name,
        steps.at(-1)!.block,
        last(steps),
      ]),
    },
  };
}
