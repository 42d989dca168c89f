// The headline of a record that is shown as its fields: a sentence that answers its question, and a
// command to go on with.

import { nameCpus } from '../../cpus';
import { items, number, text, texts } from '../../fields';
import { change, count, percent, quantity, seconds, span } from '../../format';
import type * as Records from '../../records';
import type { AnyRecord } from '../../source';
import { shellWords } from '../../words';

export interface Headline {
  sentence: string;
  /** What the command is for, and the command. */
  next?: readonly [purpose: string, command: string] | undefined;
}

type Compose<T> = (record: T) => Headline;

const processName = (name: unknown, id: unknown): string =>
  `${text(name) || 'the process'} (${number(id) ?? '?'})`;

const composeApplied: Compose<Records.Applied> = (record) => {
  const share = number(record.observed_share);
  const observed =
    share === null
      ? 'none of them ran while pinwise watched'
      : `seen there ${percent(share)} of the time`;
  const isPartial = record.granted_cpus !== record.asked_cpus;
  return {
    sentence: `${processName(record.service?.name, record.service?.pid)}: ${count(record.threads, 'thread')} placed on ${nameCpus(record.granted_cpus)}${isPartial ? ` (requested: ${text(record.asked_cpus)})` : ''} for ${seconds(record.elapsed_s)}; ${observed}.`,
  };
};

const composeFleetStatus: Compose<Records.FleetStatus> = (record) => {
  const fleet = shellWords([text(record.fleet)]);
  const isIncomplete = Boolean(record.failed || record.missing);
  const isActive = Boolean(record.running || record.queued);
  const states = (['running', 'queued', 'failed', 'missing'] as const)
    .filter((state) => record[state])
    .map((state) => `, ${record[state]} ${state}`);
  return {
    sentence: `Fleet ${text(record.fleet) || '?'}: ${record.done ?? '–'} of ${count(record.asked, 'node')} done${states.join('')}.`,
    next: !text(record.fleet)
      ? undefined
      : isActive
        ? ['Check again', `pinwise fleet status ${fleet}`]
        : isIncomplete
          ? ['Submit what is missing', `pinwise fleet resume ${fleet}`]
          : ['Compare the nodes', `pinwise fleet report ${fleet}`],
  };
};

const composeKernel: Compose<Records.KernelRecord> = (record) => {
  const moved = number(record.bytes_per_s);
  const rate =
    moved === null
      ? quantity(record.rate, `${text(record.operation) || 'operations'}/s`)
      : quantity(moved / 1e9, 'GB/s');
  return {
    sentence: `${text(record.kernel) || 'The kernel'}: ${rate} with ${count(record.threads, 'thread')}, in ${seconds(record.seconds)}.`,
  };
};

const composePlacements: Compose<Records.PlacementsRecord> = (record) => {
  const all = items(record.threads);
  const most = all.at(-1);
  if (!most) return { sentence: 'No number of threads was asked for.' };
  const words = (one: Records.ThreadPlacements): string =>
    `${count(one.threads, 'thread')} can be placed in ${text(one.placements) || '?'} ${one.placements === '1' ? 'way' : 'ways'}`;
  return {
    sentence: `${all.length > 1 ? `${words(all[0]!)}, ` : ''}${words(most)}, not counting swaps of equal units.`,
    next: ['Find the fastest', 'pinwise search -- PROGRAM'],
  };
};

const composePrediction: Compose<Records.PlacementPrediction> = (record) => {
  const all = items(record.placements).filter(({ ratio }) => number(ratio));
  const best = all.reduce<Records.PredictedPlacement | undefined>(
    (least, one) => (least && least.ratio! <= one.ratio! ? least : one),
    undefined,
  );
  if (!best) return { sentence: 'No placement to predict.' };
  const ends = span(best.low, best.high, change);
  const accuracy = number(record.median_error);
  return {
    sentence: `${text(best.label)} is predicted best: ${change(best.ratio)} cost against os-default${ends ? ` (${ends})` : ''}; ${accuracy === null ? 'nothing was run to check it' : `predictions off by ${percent(accuracy)} (median of ${record.checked ?? '–'})`}.`,
    next:
      record.machine === 'local' && text(best.place)
        ? [
            'Measure it',
            `pinwise compare --place os-default --place ${shellWords([text(best.place)])} -- ${shellWords(texts(record.command))}`,
          ]
        : undefined,
  };
};

const LEVELS: Readonly<Record<string, readonly [string, string]>> = {
  smt: ['core', 'cores'],
  llc: ['last-level cache', 'last-level caches'],
  numa: ['NUMA node', 'NUMA nodes'],
  package: ['package', 'packages'],
};

const composeReplay: Compose<Records.ReplayRecord> = (record) => {
  const levels = items(record.levels).map(({ kind, groups }) =>
    count(texts(groups).length, ...(LEVELS[text(kind)] ?? ['group', 'groups'])),
  );
  const cpus = count(record.cpus, 'CPU');
  return {
    sentence:
      levels.length > 0
        ? `Latency alone divides ${cpus} into ${levels.join(', ')}.`
        : record.flat
          ? `Latency shows no groups among ${cpus}: all pairs are alike.`
          : `Latency does not show the wiring of ${cpus}: ${text(record.cannot_tell) || 'no reason is recorded'}.`,
  };
};

const composeRuleChange: Compose<Records.RuleChange> = (record) => {
  const verb = {
    placed: record.dry_run ? 'would move' : 'moved',
    released: 'released',
    refused: 'did not move',
  }[text(record.change)];
  const subject = text(record.rule)
    ? `Rule ${record.rule}`
    : 'No rule applies:';
  const [from, to] = [record.from, record.to].map((cpus) => text(cpus));
  return {
    sentence: `${subject} ${verb ?? 'changed'} ${processName(record.name, record.process)}${from && ` from ${nameCpus(from)}`}${to && ` to ${nameCpus(to)}`}${number(record.nice) === null ? '' : `, nice ${record.nice}`}${text(record.why) && `: ${record.why}`}.`,
  };
};

const composeRules: Compose<Records.RulesRecord> = (record) => {
  const rules = items(record.rules);
  const affected = rules.flatMap((rule) => items(rule.processes)).length;
  const file = text(record.file);
  return {
    sentence: `${count(rules.length, 'rule')} would affect ${count(affected, 'process', 'processes')} now${texts(record.warnings).length > 0 ? `; ${count(texts(record.warnings).length, 'warning')}` : ''}.`,
    next: file
      ? ['Enforce them', `pinwise apply rules run ${shellWords([file])}`]
      : undefined,
  };
};

const composeTopologyDiff: Compose<Records.TopologyDiff> = (record) => {
  const number = items(record.differences).length;
  const sides = texts(record.between);
  const between = sides.length === 2 ? sides.join(' and ') : 'The machines';
  return {
    sentence:
      number > 0
        ? `${between} differ in ${count(number, 'way')}.`
        : record.same
          ? `${between} are the same.`
          : `${between} could not be compared.`,
  };
};

/** By the schema's name. */
const COMPOSERS: Readonly<Record<string, (record: never) => Headline>> = {
  applied: composeApplied,
  'fleet-status': composeFleetStatus,
  kernel: composeKernel,
  placements: composePlacements,
  prediction: composePrediction,
  replay: composeReplay,
  'rule-change': composeRuleChange,
  rules: composeRules,
  'topology-diff': composeTopologyDiff,
};

/** The headline of a record; null for an unknown kind. */
export const composeHeadline = (
  kind: string,
  record: AnyRecord,
): Headline | null => COMPOSERS[kind]?.(record as never) ?? null;
