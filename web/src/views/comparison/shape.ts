// The arms of a comparison, and what a reader sees first, computed from the record.

import { filterMap } from '../../lists';
import { finite, median } from '../../numbers';
import type {
  Arm,
  Comparison,
  ContrastRecord,
  HeadlineRecord,
  Maybe,
} from '../../records';

/** An arm's standing, which decides its position and colour; the record has a word for it. */
export type Standing =
  | 'baseline'
  | 'faster'
  | 'slower'
  | 'same'
  | 'undecided'
  | 'eliminated'
  | 'invalid'
  | 'unknown';

export interface Dot {
  value: number;
  cost: number;
  at_s: number | null;
  block: number | null;
  isScreening: boolean;
  /** CPUs' worth of time that others, or the hypervisor, took meanwhile. */
  foreign: number | null;
  steal: number | null;
}

export interface ArmLine {
  name: string;
  arm: Arm;
  standing: Standing;
  /** The record's word for it. */
  word: string;
  isBest: boolean;
  /** Its number among the arms with a colour of their own; null of the baseline, and of arms that
   * were left out. */
  colour: number | null;
  dots: Dot[];
  median: number | null;
  low: number | null;
  high: number | null;
  contrast: ContrastRecord | null;
  /** What it is compared with, if that is not the record's baseline. */
  against: string | null;
}

export const orNull = (value: unknown): number | null =>
  finite(value) ? value : null;

function readDots(arm: Arm): Dot[] {
  return filterMap(arm.runs ?? [], (run) => {
    const value = run.metric?.value;
    if (!finite(value)) return null;
    const perSecond = (time: unknown): number | null =>
      finite(time) && finite(run.wall_s) && run.wall_s > 0
        ? time / run.wall_s
        : null;
    return {
      value,
      cost: finite(run.metric?.cost) ? run.metric.cost : value,
      at_s: orNull(run.at_s),
      block: orNull(run.block),
      isScreening: run.phase === 'screening',
      foreign: perSecond(run.foreign_cpu_s),
      steal: perSecond(run.steal_s),
    };
  });
}

function readStanding(
  arm: Arm,
  record: Comparison,
  contrast: ContrastRecord | undefined,
): Standing {
  if (arm.invalid) return 'invalid';
  if (arm.timed_out) return 'slower';
  if (arm.name === record.baseline) return 'baseline';
  if (arm.eliminated) return 'eliminated';
  return readVerdict(contrast?.verdict);
}

const VERDICTS = ['faster', 'slower', 'same', 'undecided'] as const;

export const readVerdict = (verdict: Maybe<string>): Standing =>
  VERDICTS.find((known) => known === verdict) ?? 'unknown';

/** Was the arm left out before the end? */
export const isLeftOut = (standing: Standing): boolean =>
  standing === 'eliminated' || standing === 'invalid';

/** The arms, least cost first; those without runs, and those left out, last. */
export function armLines(record: Comparison): ArmLine[] {
  const contrasts = new Map((record.contrasts ?? []).map((c) => [c.arm, c]));
  let places = 0;
  const lines = filterMap(record.arms ?? [], (arm): ArmLine | null => {
    const { name } = arm;
    if (typeof name !== 'string') return null;
    const dots = readDots(arm);
    const contrast = contrasts.get(name);
    const standing = readStanding(arm, record, contrast);
    // In the record's order, which a growing record keeps.
    const colour =
      standing === 'baseline' || isLeftOut(standing) ? null : places++;
    return {
      name,
      arm,
      standing,
      word: arm.standing || 'no verdict',
      isBest: name === record.best && !isWithheld(record),
      colour,
      dots,
      median: orNull(arm.estimate?.value) ?? median(dots.map((d) => d.value)),
      low: orNull(arm.estimate?.low),
      high: orNull(arm.estimate?.high),
      contrast: contrast ?? null,
      against:
        contrast?.baseline === record.baseline
          ? null
          : (contrast?.baseline ?? null),
    };
  });
  const cost = (line: ArmLine): number =>
    median(line.dots.map((d) => d.cost)) ?? Infinity;
  const costs = new Map(lines.map((line) => [line, cost(line)]));
  return lines.sort((a, b) => {
    const [x, y] = [costs.get(a)!, costs.get(b)!];
    const out = Number(isLeftOut(a.standing)) - Number(isLeftOut(b.standing));
    return out || (x === y ? 0 : x - y);
  });
}

export interface Head {
  /** Has it ended with a verdict? */
  isEnded: boolean;
  sentence: string;
  figure: HeadlineRecord | null;
}

/** Is the best arm not recommended? */
export const isWithheld = ({ best, verdict }: Comparison): boolean =>
  Boolean(best && verdict?.not_recommended);

/** Reads what a reader sees first: the verdict and its headline figure. */
export function readHead(record: Comparison): Head {
  const isEnded = record.stopped !== null && record.stopped !== undefined;
  return {
    isEnded,
    sentence: record.verdict?.sentence ?? '',
    figure: isEnded ? (record.verdict?.headline ?? null) : null,
  };
}

export const isRate = (record: Comparison): boolean =>
  record.metric?.better === 'higher';
