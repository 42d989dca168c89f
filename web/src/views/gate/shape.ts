// The data of a gate's drawings and tables, computed from the record.

import { items, list, number, text } from '../../fields';
import { count, percent, quantity, wholeNumber } from '../../format';
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

/** Shown characters of a commit hash. */
const SHORT_HASH_LENGTH = 12;

const DECISIONS = ['pass', 'fail', 'broken', 'undecided'] as const;

export interface Headline {
  /** The gate's verdict, in a word; empty while it runs. */
  word: string;
  /** The class of that word, of which there are four. */
  decision: string;
  sentence: string;
  advice: string;
}

/** What a reader sees first. */
export function toHeadline(record: GateRecord): Headline {
  if (!record.stopped)
    return {
      word: '',
      decision: '',
      sentence: text(record.verdict?.sentence),
      advice: '',
    };
  // As in the text output, a decision of a later version, unknown here, is not a pass.
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

/** The number of pairs, over all benchmarks. */
export const countPairs = (record: GateRecord): number =>
  items(record.benchmarks).reduce((sum, b) => sum + list(b.pairs).length, 0);

/** A build's name as on the command line; a commit is shortened. */
export function nameBuild(build: Maybe<BuildRecord>, role: string): string {
  const name = text(build?.name);
  return (
    (name && name === build?.commit
      ? name.slice(0, SHORT_HASH_LENGTH)
      : name) || role
  );
}

/** A build's name, with its commit if that says more. */
export function describeBuild(build: Maybe<BuildRecord>): string {
  const name = nameBuild(build, '');
  const commit = text(build?.commit).slice(0, SHORT_HASH_LENGTH);
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
  /** Ends of the drawn interval; where there is only a limit, from the estimate to the limit. */
  low: number | null;
  high: number | null;
  /** The cost ratio from which a benchmark is slower; null if unknown. */
  limit: number | null;
  change: string;
  interval: string;
}

const OUTCOME_RANKS: Readonly<Record<string, number>> = {
  slower: 0,
  failed: 1,
  missing: 1,
  undecided: 2,
};

/** The benchmarks, those that need attention first, then better ones, the others in the order of
 * the suite. */
export function toGateLines(record: GateRecord): GateLine[] {
  const rank = ({ outcome, mark }: GateLine): number =>
    OUTCOME_RANKS[outcome] ?? (mark === 'better' ? 3 : 4);
  return items(record.benchmarks)
    .map(toGateLine)
    .sort((a, b) => rank(a) - rank(b));
}

/** Did CPU time decide, instead of the benchmark's own metric? */
export const isByCpu = ({ cpu }: GateBenchmark): boolean =>
  cpu?.decides === true;

/** The unit of the figure that decided. */
export const unitOf = (benchmark: GateBenchmark): string =>
  isByCpu(benchmark) ? 's' : text(benchmark.metric?.unit);

function toGateLine(benchmark: GateBenchmark): GateLine {
  const decisive =
    (isByCpu(benchmark) ? benchmark.cpu : benchmark) ?? benchmark;
  const ratio = positive(decisive.ratio) ? decisive.ratio : null;
  const { low, high } = decisive;
  const isKnown = ratio !== null && positive(low) && positive(high);
  const outcome = text(benchmark.outcome);
  const word = text(benchmark.standing) || outcome;
  // A benchmark passes by one end of its own interval; that of the whole suite is wider.
  const limit = number(decisive.high_alone);
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
    mark: chooseMark(benchmark, outcome, word),
    ratio,
    low: from,
    high: to,
    limit: effect !== null && effect > 0 ? 1 + effect : null,
    change: text(benchmark.change) || text(decisive.effect?.text),
    interval: text(benchmark.interval) || text(decisive.effect?.interval),
  };
}

function chooseMark(
  { metric }: GateBenchmark,
  outcome: string,
  word: string,
): GateLine['mark'] {
  if (outcome === 'slower') return 'worse';
  if (outcome === 'faster' || word === `passed (${metric?.better_word})`)
    return 'better';
  return outcome === 'passed' ? 'passed' : 'open';
}

/** Lines to show at once, and lines that merely passed, which are folded. If all passed, all are
 * shown. */
export function splitPassed(
  lines: readonly GateLine[],
): [shown: GateLine[], folded: GateLine[]] {
  const isPassed = ({ mark }: GateLine): boolean => mark === 'passed';
  const shown = lines.filter((line) => !isPassed(line));
  return shown.length === 0
    ? [[...lines], []]
    : [shown, lines.filter(isPassed)];
}

/** Is a higher figure better? Its cost is then the inverse. */
export const isRate = ({ benchmark }: GateLine): boolean =>
  benchmark.metric?.better === 'higher';

/** The smallest effect that counts; empty if it is unknown. */
export const limitText = ({ limit }: GateLine): string =>
  limit ? percent(limit - 1) : '';

/** Rows of the table of benchmarks. */
export function benchmarkRows(lines: readonly GateLine[]): Cell[][] {
  return lines.map((line, at) => {
    const { benchmark: b, name, change, interval, word } = line;
    // Where CPU time decided, the medians are of CPU time too.
    const byCpu = isByCpu(b);
    const unit = unitOf(b);
    const quantityCell = (value: Maybe<number>): Cell => ({
      text: quantity(value, unit),
      sort: number(value),
    });
    const medianCpuTime = (
      of: (pair: GatePair) => Maybe<number>,
    ): number | null =>
      median(list(b.pairs).flatMap((pair) => number(of(pair)) ?? []));
    const pairs = list(b.pairs).length;
    return [
      { text: name },
      { text: change || '–', sort: line.ratio },
      // The lines are in the order of their verdicts.
      { text: word, sort: at },
      { text: interval || '–', sort: line.high },
      quantityCell(byCpu ? medianCpuTime((pair) => pair.base_cpu_s) : b.base),
      quantityCell(byCpu ? medianCpuTime((pair) => pair.head_cpu_s) : b.head),
      { text: limitText(line) || '–', sort: line.limit },
      { text: wholeNumber(pairs), sort: pairs },
    ];
  });
}

export interface PairDot {
  /** Seconds since the start. */
  at: number;
  /** Cost of the head over that of the base. */
  ratio: number;
  base: number;
  head: number;
  isHeadFirst: boolean;
}

/** The pairs of a benchmark that have a ratio. */
export function toPairDots(line: GateLine): PairDot[] {
  return filterMap(items(line.benchmark.pairs), (pair) => {
    const { at_s } = pair;
    const [base, figure] = isByCpu(line.benchmark)
      ? [pair.base_cpu_s, pair.head_cpu_s]
      : [pair.base, pair.head];
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
export function summariseOutcomes(lines: readonly GateLine[]): string {
  const words = groupBy(lines, ({ word }) => word);
  return `${count(lines.length, 'benchmark')}: ${[...words].map(([word, all]) => `${all.length} ${word}`).join(', ')}.`;
}
