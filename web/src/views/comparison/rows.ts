// The rows of a comparison's tables.

import { fixed, percent, quantity, span, withSpan } from '../../format';
import { filterMap } from '../../lists';
import { ascending, finite, mapNumber, quantile } from '../../numbers';
import type {
  Arm,
  ContrastRecord,
  EffectRecord,
  RunRecord,
  SettingRecord,
} from '../../records';
import { factorLabel, isFactor } from '../../scales';
import { numberColumns } from '../../table';
import { describeEffect } from './disagreement';
import { orNull } from './shape';
import type { ArmLine } from './shape';

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
