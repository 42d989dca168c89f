// The data of a comparison's drawings, computed from the record.

import {
  change,
  count,
  fixed,
  percent,
  quantity,
  span,
  withSpan,
} from '../../format';
import { filterMap, groupBy } from '../../lists';
import {
  ascending,
  finite,
  median,
  quantile,
  mapNumber,
  positive,
} from '../../numbers';
import type {
  Arm,
  Comparison,
  ContrastRecord,
  EffectRecord,
  HeadlineRecord,
  Maybe,
  RunRecord,
  SettingRecord,
} from '../../records';
import { factorLabel, isFactor } from '../../scales';
import { numberColumns } from '../../table';
import { buildDisagreeingRows, toRatios, describeEffect } from './disagreement';

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

const orNull = (value: unknown): number | null =>
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

const readVerdict = (verdict: Maybe<string>): Standing =>
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

/** The best arm if it is not recommended: the others are no better. */
const AHEAD = 'Ahead, but not recommended';

/** Is the best arm not recommended? */
const isWithheld = ({ best, verdict }: Comparison): boolean =>
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

/** Arms with the same advice: use, avoid, or measure on. */
export interface AdviceGroup {
  word: string;
  standing: 'use' | 'avoid' | 'open' | 'equal';
  arms: ArmLine[];
}

/** Groups the arms by advice, each once, according to their standings in the record. */
export function adviceGroups(
  record: Comparison,
  lines: readonly ArmLine[],
): AdviceGroup[] {
  if (!readHead(record).isEnded) return [];
  const better = record.metric?.better_word ?? 'better';
  const used = usedArm(record);
  const groupOf = (line: ArmLine): [string, AdviceGroup['standing']] => {
    if (line.name === used)
      return isWithheld(record) ? [AHEAD, 'open'] : ['Use', 'use'];
    switch (line.standing) {
      case 'baseline':
        return ['Baseline', 'equal'];
      case 'faster':
        return [`Also ${better}`, 'use'];
      case 'same':
        return ['Same', 'equal'];
      case 'slower':
        return ['Avoid', 'avoid'];
      case 'invalid':
        return ['Failed', 'avoid'];
      case 'eliminated':
        return ['Screened out', 'open'];
      default:
        return ['Undecided', 'open'];
    }
  };
  const beside = (name: string | null | undefined): string =>
    JSON.stringify(
      record.arms?.find((arm) => arm.name === name)?.setting?.beside ?? [],
    );
  // What a companion costs an arm is no reason to avoid the arm.
  const choices = lines.filter(
    ({ name, contrast }) =>
      name === used || !contrast || beside(name) === beside(contrast.baseline),
  );
  const groups = [...groupBy(choices, (line) => groupOf(line)[0])].map(
    ([word, arms]): AdviceGroup => ({
      word,
      standing: groupOf(arms[0])[1],
      arms,
    }),
  );
  const order = [
    'Use',
    AHEAD,
    `Also ${better}`,
    'Baseline',
    'Same',
    'Undecided',
    'Avoid',
    'Failed',
    'Screened out',
  ];
  const place = (word: string): number => order.indexOf(word);
  return groups.sort((a, b) => place(a.word) - place(b.word));
}

/** The arm that the verdict recommends: the best, or the baseline if nothing is better. */
const usedArm = (record: Comparison): string | null =>
  record.best ??
  (record.verdict?.kind === 'leave_alone' ? (record.baseline ?? null) : null);

/** The settings of an arm's runs beside their placement. */
export function settingText(setting: SettingRecord | null | undefined): string {
  const { limit } = setting ?? {};
  const parts = [
    limit &&
      `limit of ${limit.cpus} CPUs in ${1000 * (limit.period_s ?? 0)} ms (Kubernetes: limits.cpu: ${Math.round(1000 * (limit.cpus ?? 0))}m)`,
    setting?.is_exclusive &&
      (setting.is_isolated
        ? 'cpuset of its own, isolated'
        : 'cpuset of its own (Kubernetes: a Guaranteed pod, static policy)'),
    setting?.policy && `policy ${setting.policy}`,
    typeof setting?.nice === 'number' && `nice ${setting.nice}`,
    setting?.has_core_scheduling && 'core scheduling',
    ...(setting?.beside ?? []).map(
      ({ name, command }) => `beside ${name}: ${(command ?? []).join(' ')}`,
    ),
  ];
  return parts.filter(Boolean).join(', ');
}

export const isRate = (record: Comparison): boolean =>
  record.metric?.better === 'higher';

export interface RatioLine extends Pick<
  ArmLine,
  'name' | 'standing' | 'word' | 'isBest' | 'colour' | 'against'
> {
  /** The arm's figure over the baseline's. */
  ratio: number;
  low: number | null;
  high: number | null;
  change: string;
  interval: string;
}

/** Arms that were compared with the baseline, best first; below one whose verdict is withheld
 * the figures that disagree. */
export function ratioLines(
  lines: readonly ArmLine[],
  isRate: boolean,
): RatioLine[] {
  return filterMap(
    lines,
    ({ name, standing, word, isBest, colour, contrast, against }) => {
      const ratios = toRatios(contrast?.effect);
      if (!ratios) return null;
      const of = { name, standing, word, isBest, colour, against };
      const line = { ...of, ...ratios, ...describeEffect(contrast?.effect) };
      return { line, contrast };
    },
  )
    .sort(({ line: a }, { line: b }) =>
      isRate ? b.ratio - a.ratio : a.ratio - b.ratio,
    )
    .flatMap(({ line, contrast }) => [
      line,
      ...buildDisagreeingRows(line, contrast, isRate),
    ]);
}

/** What the arms beside a companion are compared with. */
export const ALONE = 'the same arm alone';

/** What companions change for each arm, which the verdict says first, before the other rows. */
export function withCompanions(
  { companion_effects, metric, baseline }: Comparison,
  rows: readonly RatioLine[],
  lines: readonly ArmLine[],
): RatioLine[] {
  const words: Partial<Record<string, Maybe<string>>> = {
    faster: metric?.better_word,
    slower: metric?.worse_word,
  };
  const beside = filterMap(
    companion_effects ?? [],
    ({ arm, companion, effect, verdict }): RatioLine | null => {
      const ratios = toRatios(effect);
      const name = `${arm} beside ${companion}`;
      const line = lines.find((one) => one.name === name);
      const standing = readVerdict(verdict);
      return ratios
        ? {
            name,
            standing,
            word: words[standing] ?? standing,
            isBest: false,
            colour: line?.colour ?? null,
            against: ALONE,
            ...ratios,
            ...describeEffect(effect),
          }
        : null;
    },
  );
  const isSaid = ({ name, against }: RatioLine): boolean =>
    beside.some((one) => one.name === name) &&
    name.startsWith(`${against ?? baseline} beside `);
  return [...beside, ...rows.filter((row) => !isSaid(row))];
}

/** Do the medians of an arm and its baseline say another change than the blocks, by more than this? */
export function isOtherThanMedians(
  lines: readonly ArmLine[],
  effect: number,
): boolean {
  const medianOf = new Map(lines.map(({ name, median }) => [name, median]));
  return lines.some(({ median, contrast }) => {
    const base = medianOf.get(contrast?.baseline ?? '');
    const ratio = toRatios(contrast?.effect)?.ratio;
    return (
      positive(median) &&
      positive(base) &&
      positive(ratio) &&
      Math.abs(median / base - ratio) > effect
    );
  });
}

/** The ratio plot in a sentence. */
export function ratioSummary(rows: readonly RatioLine[], what: string): string {
  const arms = rows.filter((row) => row.word !== '');
  const effectText = arms
    .slice(0, 3)
    .map((r) => `${r.name} ${r.change} (${r.word})`);
  const more = arms.length > 3 ? ` and ${arms.length - 3} more` : '';
  return `${what}: ${effectText.join(', ')}${more}.`;
}

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
export function dotsSummary(lines: readonly ArmLine[], unit: string): string {
  const runs = lines.reduce((sum, line) => sum + line.dots.length, 0);
  const first = lines.find(
    (line) => line.median !== null && !isLeftOut(line.standing),
  );
  const best = first
    ? ` Best median: ${first.name}, ${quantity(first.median, unit)}.`
    : '';
  return `${count(runs, 'run')} of ${count(lines.filter((l) => l.dots.length > 0).length, 'arm')}, a dot each.${best}`;
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

export const QUANTILE_COLUMNS = [
  'Arm',
  ...numberColumns('Runs', 'least', '10 %', 'median', '90 %', '99 %', 'most'),
];

/** Rows of quantiles, in the order of QUANTILE_COLUMNS. */
export function quantileRows(
  lines: readonly ArmLine[],
  unit: string,
): (string | number)[][] {
  return lines
    .filter((line) => line.dots.length > 0)
    .map((line) => {
      const sorted = ascending(line.dots.map((d) => d.value));
      return [
        line.name,
        line.dots.length,
        ...[0, 0.1, 0.5, 0.9, 0.99, 1].map((share) =>
          quantity(quantile(sorted, share), unit),
        ),
      ];
    });
}

function effectText(effect: EffectRecord | null | undefined): string | null {
  const { change, interval } = describeEffect(effect);
  if (!change) return null;
  return change + (interval ? ` (${interval})` : '');
}

/** A contrast by another judge; null if it was not requested. */
const judgedWords = (contrast: ContrastRecord, judge: string): string | null =>
  effectText(contrast.others?.find((other) => other.judge === judge)?.effect);

/** The conditions that the ratio depends on. */
function dependences(contrast: ContrastRecord): string {
  const all: [unknown, string][] = [
    [contrast.depends_on_load, 'load'],
    [contrast.depends_on_tail, 'tail'],
    [contrast.depends_on_order, 'order of runs'],
    [contrast.depends_on_time, 'time'],
  ];
  const named = filterMap(all, ([is, word]) => (is ? word : null));
  return named.length > 0 ? named.join(', ') : '–';
}

/** The change by the CPUs that others used; null if load was constant or is unknown. */
function changeByLoad({ load_levels: levels }: ContrastRecord): string | null {
  if (!levels) return null;
  const all = [levels.light, levels.medium, levels.heavy];
  return filterMap(all, (level) => level ?? null)
    .map(({ ratio, change, foreign_cpus }) => {
      const text = isFactor(ratio ?? 1) ? factorLabel(ratio!) : change;
      return `${text} at ${fixed(foreign_cpus ?? 0, 1)}`;
    })
    .join(', ');
}

/** Rows of the table of contrasts. */
export function contrastRows(lines: readonly ArmLine[]): (string | null)[][] {
  return filterMap(lines, ({ contrast: c, word, name }) =>
    c
      ? [
          name,
          effectText(c.effect),
          word,
          mapNumber(c.p_adjusted, pText),
          effectText(c.cpu_time?.effect),
          effectText(c.ready_per_cpu_time?.effect),
          effectText(c.wall_per_ready_time?.effect),
          judgedWords(c, 'mean') ?? (c.totals?.mean || null),
          judgedWords(c, 'p90') ?? (c.totals?.p90 || null),
          withSpan(c.spread_ratio, c.spread_low, c.spread_high, timesText),
          changeByLoad(c),
          dependences(c),
        ]
      : null,
  );
}

const timesText = (ratio: number): string => `×${fixed(ratio, 2)}`;
const pText = (value: number): string =>
  value < 0.0001 ? '< 0.0001' : value.toPrecision(2);

/** Share of the runnable time of an arm's threads in which its own CPU limit throttled them. */
function throttledText(arm: Arm): string | null {
  if (!arm.setting?.limit) return null;
  const sum = (part: (run: RunRecord) => unknown): number =>
    (arm.runs ?? [])
      .map(part)
      .filter(finite)
      .reduce((a, b) => a + b, 0);
  const held = sum((run) => run.throttled_s);
  const cpu = sum((run) => run.user_s) + sum((run) => run.sys_s);
  return held + cpu > 0 ? percent(held / (held + cpu)) : null;
}

/** Rows of the arms: the CPUs of each, and its result; without errors that were `said`. */
export function armRows(
  lines: readonly ArmLine[],
  unit: string,
  said?: string | null,
): (string | number | null)[][] {
  return lines.map((line) => [
    line.name,
    line.dots.length,
    line.median === null ? null : quantity(line.median, unit),
    span(line.low, line.high, (end) => quantity(end, unit)),
    mapNumber(line.arm.spread?.cv, percent),
    mapNumber(line.arm.threads?.running, (running) => fixed(running, 2)),
    mapNumber(line.arm.threads?.queued, (queued) => fixed(queued, 2)),
    mapNumber(line.arm.threads?.blocked, percent),
    throttledText(line.arm),
    line.word +
      (line.isBest ? ', best' : '') +
      (line.arm.invalid && !said?.includes(line.arm.invalid)
        ? `: ${line.arm.invalid}`
        : ''),
  ]);
}

/** Rows of scheduler figures from one traced run of each arm. */
export function traceRows(
  lines: readonly ArmLine[],
): (string | number | null)[][] {
  return filterMap(lines, ({ name, arm: { trace } }) => {
    if (!trace) return null;
    const moves = Object.values(trace.totals?.migrations ?? {}).filter(finite);
    return [
      name,
      mapNumber(trace.totals?.cpu_s, (cpuS) => quantity(cpuS, 's')),
      orNull(trace.totals?.switches),
      moves.length > 0 ? moves.reduce((a, b) => a + b, 0) : null,
      mapNumber(trace.waits?.total_s, (totalS) => quantity(totalS, 's')),
      mapNumber(trace.avoidable_smt_sharing?.percent, (value) =>
        percent(value / 100),
      ),
      trace.sentence ?? null,
    ];
  });
}
