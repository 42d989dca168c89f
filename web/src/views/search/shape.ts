// What a search's drawings show, worked out of the record.

import { count, percent, quantity, span } from '../../format';
import { filterMap } from '../../lists';
import { finite, positive, knownEnds } from '../../numbers';
import type { Having, PredictedArm, SearchRecord } from '../../records';
import { type Cell, figureCell } from '../../sortable';
import type { NamedCommand } from '../../headline';
import { numberColumns } from '../../table';
import { shellWords } from '../../words';

/** A prediction with its 90 % interval, and the result. */
export interface CheckedPrediction {
  arm: string;
  predicted: number;
  low: number | null;
  high: number | null;
  measured: number;
}

/** Predictions before an arm's first run, and what that run measured. */
export const checkedPredictions = (record: SearchRecord): CheckedPrediction[] =>
  filterMap(record.predictions ?? [], ({ arm, first_prediction: before }) =>
    positive(before?.predicted) && positive(before.measured)
      ? {
          arm: arm ?? '',
          predicted: before.predicted,
          ...knownEnds(before.low, before.high),
          measured: before.measured,
        }
      : null,
  );

export function summariseChecks(found: readonly CheckedPrediction[]): string {
  const known = found.filter((p) => p.low !== null && p.high !== null);
  const inside = known.filter(
    (p) => p.measured >= p.low! && p.measured <= p.high!,
  );
  return known.length > 0
    ? `${inside.length} of ${known.length} first runs lie in their 90 % intervals.`
    : '';
}

export const CANDIDATE_COLUMNS = [
  'Placement',
  ...numberColumns(
    'Threads',
    'CPUs',
    'Cores',
    'LLCs',
    'Nodes',
    'Runs',
    'Measured',
    'Expected',
    '90 % interval',
    'To os-default',
    'Beats the best',
  ),
  'As --place takes it',
];

/** The cost's unit: the metric's, or none if costs are its inverse. */
export const costUnit = (record: SearchRecord): string =>
  record.metric?.better === 'higher' ? '' : (record.metric?.unit ?? '');

/** What people call a candidate; older records have its name alone. */
const labelOf = (record: SearchRecord, name: string): string =>
  record.arms?.find((arm) => arm.name === name)?.label || name;

export interface Candidate {
  name: string;
  predicted: number;
  low: number | null;
  high: number | null;
  /** Times that it ran. */
  runs: number;
  isBest: boolean;
}

/** The command that goes on with a search, as the terminal has it; none if more would not help. */
export function resumeCommand(record: SearchRecord): NamedCommand[] {
  const { id, stopped, verdict, host } = record;
  const canContinue =
    stopped === 'interrupted' ||
    (verdict?.kind === 'undecided' &&
      (stopped === 'budget' || stopped === 'runs'));
  if (!canContinue || !id) return [];
  const spec = host?.machine_spec ?? 'local';
  const machine = spec === 'local' ? [] : ['--machine', spec];
  const more = { budget: ' --budget TIME', runs: ' --max-runs N' }[
    stopped as string
  ];
  const words = ['pinwise', 'search', ...machine, '--resume', id];
  return [['Continue', shellWords(words) + (more ?? '')]];
}

/** The candidates that have an expected cost: the best, then the least. */
export function sortCandidates(record: SearchRecord): Candidate[] {
  return filterMap(record.predictions ?? [], (p): Candidate | null => {
    if (typeof p.arm !== 'string' || !positive(p.predicted)) return null;
    return {
      name: markOf(record, p.arm) + labelOf(record, p.arm),
      predicted: p.predicted,
      ...knownEnds(p.low, p.high),
      runs: p.runs ?? 0,
      isBest: p.arm === recommendedArm(record),
    };
  }).sort(
    (a, b) => Number(b.isBest) - Number(a.isBest) || a.predicted - b.predicted,
  );
}

/** Why others may be expected to cost less than the best; empty if none is. */
export function describeAhead(all: readonly Candidate[]): string {
  const best = all.find((one) => one.isBest);
  const ahead = all.filter((one) => best && one.predicted < best.predicted);
  if (!best || ahead.length === 0) return '';
  const isOpen = ahead.every(({ high }) => high && high > best.predicted);
  const least = Math.min(...ahead.map((one) => one.predicted));
  return ` Others are expected to be better by ${percent(1 - least / best.predicted)} at most${isOpen ? ': too little to tell' : ''}.`;
}

/** Every candidate, the least expected cost first. */
export function candidateRows(record: SearchRecord): Cell[][] {
  const arms = new Map((record.arms ?? []).map((arm) => [arm.name, arm]));
  const unit = costUnit(record);
  const whole = (value: unknown): Cell => figureCell(value, String);
  const cost = (value: unknown): Cell =>
    figureCell(value, (v) => quantity(v, unit));
  const sorted = (record.predictions ?? [])
    .filter((p): p is Having<PredictedArm, 'arm'> => typeof p.arm === 'string')
    .sort((a, b) => (a.predicted ?? Infinity) - (b.predicted ?? Infinity));
  // What all have in common fills no column.
  const differs = (name: 'threads' | 'numa_nodes'): boolean =>
    new Set(sorted.map((p) => arms.get(p.arm)?.[name])).size > 1;
  const [byThreads, byNodes] = [differs('threads'), differs('numa_nodes')];
  return sorted.map((p) => {
    const arm = arms.get(p.arm) ?? {};
    return [
      {
        text:
          markOf(record, p.arm) +
          (arm.label || p.arm) +
          (arm.invalid ? ` (invalid: ${arm.invalid})` : ''),
        sort: arm.label || p.arm,
      },
      whole(byThreads && arm.threads),
      whole(arm.cpu_count),
      whole(arm.cores),
      whole(arm.llcs),
      whole(byNodes && arm.numa_nodes),
      whole(p.runs),
      cost(p.measured?.value),
      cost(p.predicted),
      {
        text: span(p.low, p.high, (end) => quantity(end, unit)) ?? '–',
        sort: p.low ?? null,
      },
      { text: p.change || '–', sort: p.ratio ?? null },
      figureCell(p.beats_best, (share) => percent(share)),
      { text: arm.label && arm.label !== p.arm ? p.arm : '' },
    ];
  });
}

/** The arm to use; what only leads, or is not recommended, is not marked. */
const recommendedArm = (record: SearchRecord): string | null => {
  const { kind, not_recommended: withheld } = record.verdict ?? {};
  return kind === 'undecided' || withheld ? null : (record.best ?? null);
};

const markOf = (record: SearchRecord, arm: string): string =>
  arm === recommendedArm(record) ? '★ ' : arm === record.least?.arm ? '☆ ' : '';

export interface Step {
  runs: number;
  leader: string;
  predicted: number;
  low: number | null;
  high: number | null;
  better: number | null;
  /** What taking the leader is expected to lose to the best of all, as a share. */
  loss: number | null;
}

/** The leader after each block. */
export function progressSteps(record: SearchRecord): Step[] {
  return filterMap(record.progress ?? [], (p) =>
    finite(p.runs) && positive(p.predicted)
      ? {
          runs: p.runs,
          leader: p.leader ?? '',
          predicted: p.predicted,
          low: p.low ?? null,
          high: p.high ?? null,
          better: p.probability_of_better ?? null,
          loss: p.expected_loss ?? null,
        }
      : null,
  );
}

export function summariseProgress(
  steps: readonly Step[],
  unit: string,
): string {
  const last = steps.at(-1);
  if (!last) return '';
  const better =
    last.better === null
      ? ''
      : `; probability of a better one ${percent(last.better)}`;
  return `After ${count(last.runs, 'run')} ${last.leader} leads, expected at ${quantity(last.predicted, unit)}${better}. ${count(new Set(steps.map((s) => s.leader)).size, 'leader')} in all.`;
}

export interface Effect {
  name: string;
  meaning: string;
  /** The metric of candidates with most of it, divided by that of those with least. */
  ratio: number;
  low: number;
  high: number;
  change: string;
  interval: string;
  isClear: boolean;
}

/** Features with what they change over the range of the candidates, the largest first. */
export function sortEffects(record: SearchRecord): Effect[] {
  const ratio = (percent: number): number => 1 + percent / 100;
  return filterMap(record.model?.features ?? [], (f) => {
    const c = f.change;
    if (!finite(c?.value) || !finite(c.low) || !finite(c.high) || c.low <= -100)
      return null;
    return {
      name: f.name ?? '',
      meaning: f.meaning ?? f.name ?? '',
      ratio: ratio(c.value),
      low: ratio(c.low),
      high: ratio(c.high),
      change: c.text ?? '',
      interval: c.interval ?? '',
      isClear: f.is_clear === true,
    };
  }).sort((a, b) => Math.abs(Math.log(b.ratio)) - Math.abs(Math.log(a.ratio)));
}
