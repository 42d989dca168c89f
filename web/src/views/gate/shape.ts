// The data of a gate's drawings and tables, computed from the record.

import { items, list, number, text } from '../../fields';
import { count, quantity, wholeNumber } from '../../format';
import { filterMap, groupBy } from '../../lists';
import { median, positive } from '../../numbers';
import type {
  BuildRecord,
  GateBenchmark,
  GatePair,
  GateRecord,
  Maybe,
} from '../../records';
import type { Cell } from '../../sortable';

/** Letters of a commit that are shown. */
const COMMIT = 12;

const DECISIONS = ['pass', 'fail', 'broken', 'undecided'] as const;

export interface Head {
  /** The gate's verdict, in a word; empty while it runs. */
  word: string;
  /** The class of that word, of which there are four. */
  decision: string;
  sentence: string;
  advice: string;
}

/** What a reader sees first. */
export function head(record: GateRecord): Head {
  if (!record.stopped)
    return {
      word: '',
      decision: '',
      sentence: text(record.verdict?.sentence),
      advice: '',
    };
  // As in the text, whatever a later version decides is not a pass.
  const decision =
    DECISIONS.find((known) => known === record.verdict?.decision) ??
    'undecided';
  return {
    word: decision.toUpperCase(),
    decision,
    sentence: text(record.verdict?.sentence),
    advice: text(record.verdict?.advice),
  };
}

/** Pairs of all benchmarks. */
export const pairsIn = (record: GateRecord): number =>
  items(record.benchmarks).reduce((sum, b) => sum + list(b.pairs).length, 0);

/** A build's name, as on the command line; of a commit its first letters. */
export function buildName(build: Maybe<BuildRecord>, role: string): string {
  const name = text(build?.name);
  return (
    (name && name === build?.commit ? name.slice(0, COMMIT) : name) || role
  );
}

/** A build's name, with its commit if that says more. */
export function buildWords(build: Maybe<BuildRecord>): string {
  const name = buildName(build, '');
  const commit = text(build?.commit).slice(0, COMMIT);
  return commit && commit !== name ? `${name} (${commit})` : name;
}

export interface GateLine {
  benchmark: GateBenchmark;
  name: string;
  outcome: string;
  /** The outcome as the text has it: "passed (faster)". */
  word: string;
  /** How it is drawn: a passed one that is likely better is not merely passed. */
  mark: 'worse' | 'better' | 'passed' | 'open';
  /** Cost of the head over that of the base; null without an estimate. */
  ratio: number | null;
  /** Ends of what is drawn; of a limit, from the estimate to it. */
  low: number | null;
  high: number | null;
  /** The cost ratio from which a benchmark is slower; null if unknown. */
  limit: number | null;
  change: string;
  interval: string;
}

const RANKS: Readonly<Record<string, number>> = {
  slower: 0,
  failed: 1,
  missing: 1,
  undecided: 2,
};

/** The benchmarks, those that need attention first, then better ones, the others in the order of the suite. */
export function gateLines(record: GateRecord): GateLine[] {
  const rank = ({ outcome, mark }: GateLine): number =>
    RANKS[outcome] ?? (mark === 'better' ? 3 : 4);
  return items(record.benchmarks)
    .map(lineOf)
    .sort((a, b) => rank(a) - rank(b));
}

function lineOf(benchmark: GateBenchmark): GateLine {
  // The basis of its outcome.
  const isByCpu = benchmark.cpu?.decides === true;
  const decisive = (isByCpu ? benchmark.cpu : benchmark) ?? benchmark;
  const ratio = positive(decisive.ratio) ? decisive.ratio : null;
  const { low, high } = decisive;
  const isKnown = ratio !== null && positive(low) && positive(high);
  const outcome = text(benchmark.outcome);
  const word = text(benchmark.standing) || outcome;
  // It passes by one end of its own interval; the suite's is wider.
  const limit = number(benchmark.high_alone);
  const isLimit = ratio !== null && limit !== null && limit > 0;
  const [from, to] =
    isLimit && (outcome === 'passed' || !isKnown)
      ? [Math.min(ratio, limit), limit]
      : isKnown
        ? [low, high]
        : [null, null];
  const effect = number(benchmark.min_effect);
  return {
    benchmark,
    name: text(benchmark.name),
    outcome,
    word,
    mark: markOf(benchmark, outcome, word),
    ratio,
    low: from,
    high: to,
    limit: effect !== null && effect > 0 ? 1 + effect : null,
    change: text(benchmark.change) || text(decisive.effect?.text),
    interval: text(benchmark.interval) || text(decisive.effect?.interval),
  };
}

function markOf(
  { metric }: GateBenchmark,
  outcome: string,
  word: string,
): GateLine['mark'] {
  if (outcome === 'slower') return 'worse';
  if (outcome === 'faster' || word === `passed (${metric?.better_word})`)
    return 'better';
  return outcome === 'passed' ? 'passed' : 'open';
}

/** The lines to show at once, and those that merely passed, to be folded if others are shown. */
export function splitPassed(
  lines: readonly GateLine[],
): [shown: GateLine[], folded: GateLine[]] {
  const isPassed = ({ mark }: GateLine): boolean => mark === 'passed';
  const shown = lines.filter((line) => !isPassed(line));
  return shown.length === 0
    ? [[...lines], []]
    : [shown, lines.filter(isPassed)];
}

/** Is more of the figure better? Its cost is then the inverse. */
export const isRate = ({ benchmark }: GateLine): boolean =>
  benchmark.metric?.better === 'higher';

/** Rows of the table of benchmarks. */
export function benchmarkRows(lines: readonly GateLine[]): Cell[][] {
  return lines.map((line, at) => {
    const { benchmark: b, name, change, interval, word } = line;
    // A change of CPU time stands beside medians of CPU time.
    const isByCpu = b.cpu?.decides === true;
    const unit = isByCpu ? 's' : text(b.metric?.unit);
    const figure = (value: Maybe<number>): Cell => ({
      text: quantity(value, unit),
      sort: number(value),
    });
    const cpu = (of: (pair: GatePair) => Maybe<number>): number | null =>
      median(list(b.pairs).flatMap((pair) => number(of(pair)) ?? []));
    const pairs = list(b.pairs).length;
    return [
      { text: name },
      { text: change || '–', sort: line.ratio },
      // The lines are in the order of their verdicts.
      { text: word, sort: at },
      { text: interval || '–', sort: line.high },
      figure(isByCpu ? cpu((pair) => pair.base_cpu_s) : b.base),
      figure(isByCpu ? cpu((pair) => pair.head_cpu_s) : b.head),
      { text: wholeNumber(pairs), sort: pairs },
    ];
  });
}

export interface PairDot {
  at: number;
  /** Cost of the head over that of the base. */
  ratio: number;
  base: number;
  head: number;
  isHeadFirst: boolean;
}

/** The pairs of a benchmark that have a ratio. */
export function pairDots(line: GateLine): PairDot[] {
  return filterMap(items(line.benchmark.pairs), (pair) => {
    const { at_s, base, head: figure } = pair;
    if (number(at_s) === null || !positive(base) || !positive(figure))
      return null;
    return {
      at: at_s!,
      ratio: isRate(line) ? base / figure : figure / base,
      base,
      head: figure,
      isHeadFirst: pair.head_first === true,
    };
  });
}

/** The chart of benchmarks in a sentence. */
export function summary(lines: readonly GateLine[]): string {
  const words = groupBy(lines, ({ word }) => word);
  return `${count(lines.length, 'benchmark')}: ${[...words].map(([word, all]) => `${all.length} ${word}`).join(', ')}.`;
}
