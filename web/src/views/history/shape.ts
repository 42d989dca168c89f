// The history's filters in the address, names of kinds and verdicts, and a
// question's figures over time with the machine's changes.

import type {
  Entry,
  Figure,
  Filter,
  GateHistory,
  CommitRange,
} from '../../source';
import {
  change,
  formatMoments,
  quantity,
  span,
  wholeNumber,
} from '../../format';
import { filterMap, groupBy, tally } from '../../lists';
import type { NamedCommand } from '../../headline';
import { shellWords } from '../../words';
import { describeChange } from './machine';

/** Records asked for at a time. */
export const PAGE_SIZE = 100;

const FILTER_KEYS = ['host', 'schema', 'tag', 'subject', 'text'] as const;

/** The filter that an address holds. */
export function parseFilter(query: URLSearchParams): Filter {
  const filter: Filter = {};
  for (const key of FILTER_KEYS) {
    const value = query.get(key);
    if (value) filter[key] = value;
  }
  return filter;
}

/** The address that holds a filter. */
export function formatAddress(
  filter: Filter,
  range: TimeRange | null = null,
): string {
  const query = new URLSearchParams();
  for (const key of FILTER_KEYS) {
    const value = filter[key];
    if (value) query.set(key, value);
  }
  if (range) {
    const [from, to] = range.map((time) => new Date(time).toISOString());
    query.set('from', from!);
    query.set('to', to!);
  }
  const text = query.toString();
  return text ? `#/history?${text}` : '#/history';
}

const KIND_NAMES: Readonly<Record<string, string>> = {
  topology: 'machine',
  'profile-diff': 'difference of profiles',
};

/** "pinwise.trace/1" in words: "trace". */
export function nameKind(schema: string): string {
  const name = schema.replace(/^pinwise\./, '').replace(/\/\d+$/, '');
  return KIND_NAMES[name] ?? name.replaceAll('-', ' ');
}

/** From this many parts of a bench or fleet on, they are folded. */
const MIN_FOLDED_PARTS = 3;

/** Is it a fleet, of which nodes and what they ran are parts? */
export const isFleet = ({ schema }: Entry): boolean =>
  schema.startsWith('pinwise.fleet/');

/** The tag of the bench or fleet that a record is a part of. */
const tagOfWhole = (entry: Entry): string | undefined =>
  isFleet(entry) || entry.schema.startsWith('pinwise.fleet-report/')
    ? undefined
    : entry.tags.find(
        (tag) =>
          tag.startsWith('fleet:') ||
          (isComparison(entry) && tag.startsWith('bench:')),
      );

/** An entry of a list. If it stands for the parts of a bench or fleet, it is the fleet or the newest,
 * with the number of the others. */
export interface FoldedEntry {
  entry: Entry;
  others: number;
  tag: string | undefined;
}

/** Folds the parts of each bench and fleet into one entry, except those of the requested tag. */
export function foldParts(
  entries: readonly Entry[],
  asked: string | undefined,
): FoldedEntry[] {
  const foldedTag = (entry: Entry): string | undefined => {
    const tag = tagOfWhole(entry);
    return tag === asked ? undefined : tag;
  };
  const parts = new Map(tally(entries.map(foldedTag)));
  const fleets = new Set(entries.filter(isFleet).flatMap(({ tags }) => tags));
  const seen = new Set<string>();
  return filterMap(entries, (entry): FoldedEntry | null => {
    if (isFleet(entry)) {
      const tag = entry.tags.find((one) => parts.has(one));
      return { entry, others: tag ? parts.get(tag)! : 0, tag };
    }
    const tag = foldedTag(entry);
    if (tag !== undefined && fleets.has(tag)) return null;
    const all = tag === undefined ? 0 : (parts.get(tag) ?? 0);
    if (tag === undefined || all < MIN_FOLDED_PARTS)
      return { entry, others: 0, tag: undefined };
    if (seen.has(tag)) return null;
    seen.add(tag);
    return { entry, others: all - 1, tag };
  });
}

export interface Point {
  entry: Entry;
  /** Milliseconds since 1970. */
  time: number;
  figure: Figure;
}

/** A change of a host's machine or of a program. */
export interface Change {
  host: string;
  time: number;
  words: string;
}

export interface OverTime {
  /** Figures that the records have, most frequent first. */
  figures: string[];
  hosts: { host: string; points: Point[] }[];
  changes: Change[];
}

const timeOf = (entry: Entry): number => Date.parse(entry.time);

/** The host; with the node where a record is part of a fleet, whose nodes may share a name. */
export function hostOf({ host, id, tags }: Entry): string {
  const fleet = tags.find((tag) => tag.startsWith('fleet:'))?.slice(6);
  const node =
    fleet && id.startsWith(`${fleet}.`)
      ? id.slice(fleet.length + 1).split('~')[0]!
      : host;
  return node === host ? host : `${host} (${node})`;
}

/** A figure in words; a change in per cent has its sign. */
export const figureText = (
  value: number,
  unit: string,
  places?: number,
): string =>
  unit === '%'
    ? change(1 + value / 100)
    : unit === '' && Number.isInteger(value)
      ? wholeNumber(value)
      : quantity(value, unit, places);

/** A change in words: its interval if that is known. */
export const changeText = ({ value, low, high, unit }: Figure): string =>
  span(low, high, (end) => figureText(end, unit)) ?? figureText(value, unit);

/** Is a figure a count, of which chance is no part? */
export const isExact = ({ value, low, unit }: Figure): boolean =>
  unit === '' && low === null && Number.isInteger(value);

/** How the newest figure differs from those before, as far as intervals do not overlap; as the
 * end of a sentence. */
export function describeTrend(
  points: readonly Point[],
  isBesideValues = false,
): string {
  const [first] = points;
  const now = points.at(-1)?.figure;
  if (!first || !now || points.length < 2) return 'measured once';
  const textOf = ({ value }: Figure): string => figureText(value, now.unit);
  const moment = formatMoments(points.map(({ entry }) => entry.time));
  const isBelow = (a: Figure, b: Figure): boolean =>
    isExact(a) && isExact(b)
      ? a.value < b.value
      : a.high !== null && b.low !== null && a.high < b.low;
  if (now.low === null && !isExact(now)) {
    const reason =
      points.length < 3
        ? '2 records are too few to judge'
        : 'no intervals to judge by';
    return isBesideValues
      ? reason
      : `${reason}; last ${textOf(now)}, before ${textOf(points.at(-2)!.figure)}`;
  }
  const before = [...points]
    .reverse()
    .find(({ figure }) => isBelow(figure, now) || isBelow(now, figure));
  // A change that is smaller than the digits shown would read as none.
  return before && textOf(before.figure) !== textOf(now)
    ? `changed from ${textOf(before.figure)} to ${textOf(now)} since ${moment(before.entry.time)}`
    : `no change shown since ${moment(first.entry.time)}`;
}

/** The most frequent one; undefined without any. */
const mostFrequent = (names: readonly string[]): string | undefined =>
  tally(names).sort((a, b) => b[1] - a[1])[0]?.[0];

const isComparison = ({ schema }: Entry): boolean =>
  schema.startsWith('pinwise.comparison/');

/** Adds to comparisons the change of the arm that was best most often, as a figure; and its name. */
function addChanges(
  entries: readonly Entry[],
): [name: string | undefined, entries: readonly Entry[]] {
  const own = entries.filter(isComparison);
  const arm = mostFrequent(filterMap(own, ({ best }) => best ?? null));
  const base = mostFrequent(
    filterMap(own, ({ best, baseline }) =>
      best === arm ? (baseline ?? null) : null,
    ),
  );
  if (!arm || !base || arm === base) return [undefined, entries];
  const name = `${arm} against ${base}`;
  return [
    name,
    entries.map((entry) => {
      const change = entry.figures.find((one) => one.name === arm)?.change;
      return change && entry.baseline === base
        ? {
            ...entry,
            figures: [{ name, unit: '%', ...change }, ...entry.figures],
          }
        : entry;
    }),
  ];
}

/** A change of verdict: the records before and after it, and what it means. */
export interface NewVerdict {
  before: Point;
  after: Point;
  sentence: string;
}

/** The last change of a question's verdict; null if it did not change. */
export function findNewVerdict(points: readonly Point[]): NewVerdict | null {
  const decided = points.filter(
    ({ entry: { complete, outcome } }) =>
      complete && outcome !== null && outcome !== 'undecided',
  );
  const [arm, base] = decided[0]?.figure.name.split(' against ') ?? [];
  if (!arm || !base) return null;
  const words = decided.map(
    ({ entry }) => `${entry.outcome} ${entry.best ?? ''}`,
  );
  const at = words.reduce(
    (last, word, place) =>
      place > 0 && word !== words[place - 1] ? place : last,
    0,
  );
  const [before, after] = [decided[at - 1], decided[at]];
  if (!before || !after) return null;
  const does = after.entry.best === arm;
  const what =
    does !== (before.entry.best === arm)
      ? `${arm} ${does ? 'now' : 'no longer'} beats ${base}`
      : `The verdict on ${arm} changed`;
  const moment = formatMoments(points.map(({ entry }) => entry.time));
  const [from, to] = [before, after].map(({ figure }) =>
    figureText(figure.value, '%'),
  );
  return {
    before,
    after,
    sentence: `${what} since ${moment(after.entry.time)}: from ${from} to ${to}`,
  };
}

/** The command that says what changed between two records. */
export const diffCommand = (a: Point, b: Point): NamedCommand => [
  'See what changed',
  `pinwise record diff ${shellWords([a.entry.id, b.entry.id])}`,
];

/** Moves times, in order, apart so that none hides another on an axis of a minute or more; the last
 * one stays. */
export function spreadTimes(times: readonly number[]): number[] {
  const [start, end] = [times[0] ?? 0, times.at(-1) ?? 0];
  const gap = Math.max(end - start, 6e4) / Math.max(50, 2 * times.length);
  const moved: number[] = [];
  for (const time of times)
    moved.push(Math.max(time, (moved.at(-1) ?? -Infinity) + gap));
  return moved.map((time, at) =>
    Math.min(time, end - gap * (times.length - 1 - at)),
  );
}

/** A figure's values per host, oldest first, and the times when the machine changed. Records of the
 * same second keep the order of the list, which is newest first. */
export function collectOverTime(
  newestFirst: readonly Entry[],
  wanted: string | null,
): OverTime {
  const [change, dated] = addChanges(
    newestFirst
      .filter((entry) => Number.isFinite(timeOf(entry)))
      .reverse()
      .sort((a, b) => timeOf(a) - timeOf(b)),
  );
  const names = dated.flatMap(({ figures }) => figures.map(({ name }) => name));
  const all = tally(names).map(([name]) => name);
  const figures = [
    ...all.filter((name) => name === change),
    ...all.filter((name) => name !== change),
  ];
  const name =
    wanted !== null && figures.includes(wanted) ? wanted : figures[0];
  const points = filterMap(dated, (entry): Point | null => {
    const figure = entry.figures.find((f) => f.name === name);
    return figure && typeof figure.value === 'number'
      ? { entry, time: timeOf(entry), figure }
      : null;
  });
  const hosts = groupBy(points, ({ entry }) => hostOf(entry));
  return {
    figures,
    hosts: [...hosts].map(([host, points]) => ({ host, points })),
    changes: findChanges(dated),
  };
}

/** The times when a host's machine, or the program of a question, differs from the record
 * before; unknown values are not changes. */
export function findChanges(oldestFirst: readonly Entry[]): Change[] {
  const last = new Map<string, string>();
  const changes: Change[] = [];
  for (const entry of oldestFirst) {
    const { machine, program, subject } = entry;
    const host = hostOf(entry);
    /** Stores the value; returns the known one if it differed. */
    const replace = (what: string, now: string | null): string | null => {
      const known = last.get(`${what}\n${host}`) ?? now;
      if (now !== null) last.set(`${what}\n${host}`, now);
      return known === now ? null : known;
    };
    const oldMachine = replace('machine', machine);
    const oldProgram = replace(`program of ${subject}`, program);
    const words = [
      ...(oldMachine !== null && machine !== null
        ? [describeChange(oldMachine, machine)]
        : []),
      ...(oldProgram !== null && program !== null
        ? [`program ${shortenHashes(oldProgram)} → ${shortenHashes(program)}`]
        : []),
    ];
    if (words.length > 0)
      changes.push({ host, time: timeOf(entry), words: words.join(', ') });
  }
  return changes;
}

/** Shortens hashes to eight digits, enough to differ. */
const shortenHashes = (program: string): string =>
  program.replace(/\w{8}\w+/g, (hash) => hash.slice(0, 8));

/** Ends of a range of times, inclusive, in milliseconds since 1970. */
export type TimeRange = readonly [from: number, to: number];

/** The time range in an address; null without a valid one. */
export function parseTimeRange(query: URLSearchParams): TimeRange | null {
  const [from, to] = [query.get('from'), query.get('to')].map((text) =>
    Date.parse(text ?? ''),
  ) as [number, number];
  return from < to ? [from, to] : null;
}

/** The part of a plot over time that lies in a range. */
export function selectTimeRange(
  data: OverTime,
  range: TimeRange | null,
): OverTime {
  if (range === null) return data;
  const isIn = ({ time }: { time: number }): boolean =>
    time >= range[0] && time <= range[1];
  return {
    figures: data.figures,
    hosts: data.hosts
      .map(({ host, points }) => ({ host, points: points.filter(isIn) }))
      .filter((host) => host.points.length > 0),
    changes: data.changes.filter(isIn),
  };
}

/** A question that was measured on a host several times: its first figure over time. */
export interface Question {
  subject: string;
  host: string;
  figure: string;
  points: Point[];
  changes: Change[];
}

/** Questions measured on a host more than once, most frequent first. */
export function findQuestions(entries: readonly Entry[]): Question[] {
  return findRepeatedSubjects(entries)
    .flatMap((subject) => {
      const data = collectOverTime(
        entries.filter((entry) => entry.subject === subject),
        null,
      );
      return data.hosts.map(({ host, points }) => ({
        subject,
        host,
        figure: data.figures[0] ?? '',
        points,
        changes: data.changes.filter((change) => change.host === host),
      }));
    })
    .filter(({ points }) => points.length > 1)
    .sort((a, b) => b.points.length - a.points.length);
}

/** Questions that several of the records answer, most frequent first. */
export function findRepeatedSubjects(entries: readonly Entry[]): string[] {
  const asked = entries.filter(({ figures }) => figures.length > 0);
  return tally(filterMap(asked, ({ subject }) => subject))
    .filter(([, times]) => times > 1)
    .sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]))
    .map(([subject]) => subject);
}

/** For each step, the index of the change that it is part of. */
export function findChangesOfSteps({
  steps,
  changes,
}: Pick<GateHistory, 'steps' | 'changes'>): (number | null)[] {
  const found = steps.map((): number | null => null);
  changes.forEach((change, at) => {
    const last = steps.findIndex(({ head }) => head === change.head);
    if (last >= 0)
      found.fill(at, Math.max(0, last + 1 - change.steps), last + 1);
  });
  return found;
}

/** Shown characters of a commit hash. */
const SHORT_HASH_LENGTH = 10;

export const shortHash = (commit: string): string =>
  commit.slice(0, SHORT_HASH_LENGTH);
export const formatRange = ({ base, head }: CommitRange): string =>
  `${shortHash(base)}..${shortHash(head)}`;

/** The newest change of a benchmark, and where it is now against its first commit. */
export function describeHistory({
  benchmark,
  metric,
  steps,
  changes,
}: GateHistory): string {
  const newest = changes.at(-1);
  const by = metric?.label ? ` by ${metric.label}` : '';
  const total = steps.at(-1)?.since_first;
  const since = `${total?.text ?? '–'}${total?.interval ? ` (${total.interval})` : ''} since ${shortHash(steps[0]?.base ?? '')}`;
  return newest
    ? `${benchmark} got ${newest.is_worse ? 'worse' : 'better'}${by} in ${formatRange(newest)}: ${newest.effect.text ?? '–'}; in all ${since}.`
    : `${benchmark} is not shown to have changed${by}: ${since}.`;
}

/** The figure of a benchmark since its first commit, as its own page shows it: a point a step. */
export const historyPoints = ({
  benchmark,
  steps,
}: GateHistory): Omit<Point, 'entry'>[] =>
  steps.map(({ since_first: { value, low, high } }, time) => ({
    time,
    figure: {
      name: benchmark,
      unit: '%',
      value: value ?? 0,
      low: low ?? null,
      high: high ?? null,
    },
  }));
