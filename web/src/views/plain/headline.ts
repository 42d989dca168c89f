// The headline of a record that is shown as its fields: a sentence that answers its question, and a
// command to go on with.

import { nameCpus } from '../../cpus';
import { items, number, text, texts } from '../../fields';
import { change, count, percent, seconds, span } from '../../format';
import type { NamedCommand } from '../../headline';
import { splitAdvice } from '../../method';
import type * as Records from '../../records';
import type { AnyRecord } from '../../source';
import { shellWords } from '../../words';

type Headline = readonly [sentence: string, next?: NamedCommand | null];

export const processName = (name: unknown, id: unknown): string =>
  `${text(name) || 'the process'} (PID ${number(id) ?? '?'})`;

/** Shows where the threads of a process run. */
const watchCommand = (pid: unknown): NamedCommand => [
  'Watch its threads',
  `pinwise top${number(pid) === null ? '' : ` --pid ${number(pid)}`}`,
];

function composeApplied(record: Records.Applied): Headline {
  const { service, observed_share: share, asked_cpus: asked } = record;
  const granted = nameCpus(record.granted_cpus);
  const requested =
    record.granted_cpus === asked ? '' : ` (requested: ${text(asked)})`;
  const looks = count(record.observations, 'look');
  const on = `${granted}${requested}`;
  const took = `for ${seconds(record.elapsed_s)}`;
  const ran =
    number(share) === null
      ? `was placed on ${on} ${took}, and did not run`
      : share === 1
        ? `ran on ${on} alone ${took}`
        : `was placed on ${on} ${took}, there in ${percent(share)} of ${looks}`;
  const left = (record.threads ?? 0) - (record.ended ?? 0);
  const restored = record.returned ?? 0;
  return [
    `${processName(service?.name, service?.pid)} ${ran}; ${restored === left ? 'then' : `${restored} of`} ${count(left, 'thread was', 'threads were')} restored.`,
    watchCommand(service?.pid),
  ];
}

function composeFleetStatus(record: Records.FleetStatus): Headline {
  const states = (['running', 'queued', 'failed', 'missing'] as const)
    .filter((state) => record[state])
    .map((state) => `, ${record[state]} ${state}`);
  const [purpose, command] =
    record.running || record.queued
      ? ['Check again', 'status']
      : states.length > 0
        ? ['Submit what is missing', 'resume']
        : ['Compare the nodes', 'report'];
  const fleet = text(record.fleet);
  return [
    `Fleet ${fleet || '?'}: ${record.done ?? '–'} of ${count(record.asked, 'node')} done${states.join('')}.`,
    fleet
      ? [purpose!, `pinwise fleet ${command} ${shellWords([fleet])}`]
      : null,
  ];
}

const toBigInt = (digits: Records.Maybe<string>): bigint =>
  /^\d+$/.test(text(digits)) ? BigInt(text(digits)) : 0n;

/** Digits of a number without its power of ten. */
const MAX_DIGITS = 15;

/** "18,145"; of dozens of digits "6.9·10^27". */
export function formatWays(digits: Records.Maybe<string>): string {
  const known = toBigInt(digits);
  return text(digits).length > MAX_DIGITS
    ? Number(known).toExponential(1).replace('e+', '·10^')
    : known.toLocaleString('en-US');
}

function composePrediction(record: Records.PlacementPrediction): Headline {
  const [best] = rankPlacements(record);
  if (!best) return ['No placement to predict.'];
  const { median_error: error, machine, command } = record;
  const on =
    !machine || machine === 'local'
      ? ''
      : ` --machine ${shellWords([machine])}`;
  const its = `${change(best.ratio)} cost against os-default (${span(best.low, best.high, change)})`;
  const isBetter = (number(best.high) ?? best.ratio ?? 1) < 1;
  return [
    `${isBetter ? `${text(best.label)} is predicted best` : `Nothing is sure to beat os-default; ${text(best.label)} leads`}: ${its}; ${number(error) === null ? 'nothing was run to check it' : `predictions off by ${percent(error)} (median of ${record.checked ?? '–'})`}.`,
    [
      'Measure it',
      `pinwise compare${on} --place os-default --place ${shellWords([text(best.place)])} -- ${shellWords(texts(command))}`,
    ],
  ];
}

/** The placements, the best first. */
export function rankPlacements({
  placements,
}: Records.PlacementPrediction): Records.PredictedPlacement[] {
  const ratio = (one: Records.PredictedPlacement): number =>
    number(one.ratio) ?? Infinity;
  return items(placements).sort((a, b) => ratio(a) - ratio(b));
}

export const LEVELS: Readonly<Record<string, string>> = {
  cpu: 'CPU',
  l1: 'L1',
  l2: 'L2',
  l3: 'L3',
  numa_node: 'NUMA node',
  smt: 'core',
  llc: 'last-level cache',
  package: 'package',
};

function composeReplay(record: Records.ReplayRecord): Headline {
  const levels = items(record.levels).map(({ kind, groups }) =>
    count(texts(groups).length, LEVELS[text(kind)] ?? 'group'),
  );
  const cpus = count(record.cpus, 'CPU');
  return [
    levels.length > 0
      ? `Latency alone divides ${cpus} into ${levels.join(' and ')}.`
      : record.flat
        ? `Latency shows no groups among ${cpus}: all pairs are alike.`
        : `Latency does not show the wiring of ${cpus}: ${text(record.cannot_tell) || 'no reason is recorded'}.`,
    ['Show what the kernel reports', 'pinwise topology'],
  ];
}

function composeRuleChange(record: Records.RuleChange): Headline {
  const verb = {
    placed: record.dry_run ? 'would move' : 'moved',
    released: 'released',
    refused: 'did not move',
  }[text(record.change)];
  const [rule, from, to, why] = (['rule', 'from', 'to', 'why'] as const).map(
    (name) => text(record[name]),
  );
  return [
    `${rule ? `Rule ${rule}` : 'No rule applies:'} ${verb ?? 'changed'} ${processName(record.name, record.process)}${from && ` from ${nameCpus(from)}`}${to && ` to ${nameCpus(to)}`}${number(record.nice) === null ? '' : `, nice ${record.nice}`}${why && `: ${why}`}.`,
    watchCommand(record.process),
  ];
}

/** Processes that the headline names; of more it gives the number. */
const MAX_NAMED = 2;

function composeRules({ rules, file }: Records.RulesRecord): Headline {
  const affected = items(rules).flatMap(({ processes, cpus, nice }) =>
    items(processes).map((one) => {
      const to = cpus ? ` to ${nameCpus(cpus)}` : '';
      const changed = number(nice) === null ? '' : ` at nice ${nice}`;
      return `${processName(one.name, one.process)}${to}${changed}`;
    }),
  );
  const more = affected.length - MAX_NAMED;
  return [
    affected.length === 0
      ? 'No process matches a rule now.'
      : `The rules would move ${affected.slice(0, MAX_NAMED).join(', ')}${more > 0 ? ` and ${count(more, 'other process', 'other processes')}` : ''}.`,
    file
      ? ['Enforce them', `pinwise apply rules run ${shellWords([file])}`]
      : null,
  ];
}

const composeTopologyDiff = (record: Records.TopologyDiff): Headline => [
  text(record.sentence) || 'This record has no conclusion.',
  splitAdvice(text(record.advice)),
];

/** By the schema's name. */
const COMPOSERS: Readonly<Record<string, (record: never) => Headline>> = {
  applied: composeApplied,
  'fleet-status': composeFleetStatus,
  prediction: composePrediction,
  replay: composeReplay,
  'rule-change': composeRuleChange,
  rules: composeRules,
  'topology-diff': composeTopologyDiff,
};

/** The headline of a record; empty for an unknown kind. */
export const composeHeadline = (
  kind: string,
  record: AnyRecord,
): Headline | [] => COMPOSERS[kind]?.(record as never) ?? [];
