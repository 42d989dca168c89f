// The history's filters in the address, the kinds of records in words, and a
// question's figures over time with the machine's changes.

import type { Entry, Figure, Filter, GateHistory } from '../../source';
import { filterMap, groupBy, tally } from '../../lists';

/** Records asked for at a time. */
export const AT_A_TIME = 100;

const WORDS = ['host', 'schema', 'tag', 'subject', 'text'] as const;

/** The filter that an address holds. */
export function filterOf(query: URLSearchParams): Filter {
  const filter: Filter = {};
  for (const word of WORDS) {
    const value = query.get(word);
    if (value) filter[word] = value;
  }
  return filter;
}

/** The address that holds a filter. */
export function addressOf(
  filter: Filter,
  stretch: Stretch | null = null,
): string {
  const query = new URLSearchParams();
  for (const word of WORDS) {
    const value = filter[word];
    if (value) query.set(word, value);
  }
  if (stretch) {
    const [from, to] = stretch.map((time) => new Date(time).toISOString());
    query.set('from', from!);
    query.set('to', to!);
  }
  const text = query.toString();
  return text ? `#/history?${text}` : '#/history';
}

const KINDS: Readonly<Record<string, string>> = {
  topology: 'machine',
  'profile-diff': 'difference of profiles',
};

/** "pinwise.trace/1" in words: "trace". */
export function kindWords(schema: string): string {
  const name = schema.replace(/^pinwise\./, '').replace(/\/\d+$/, '');
  return KINDS[name] ?? name.replaceAll('-', ' ');
}

/** Signs of verdicts, beside their words. */
const SIGNS: Readonly<Record<string, string>> = {
  best: '★',
  same: '=',
  does_not_matter: '=',
  leave_alone: '✓',
  pass: '✓',
  fail: '✗',
  broken: '‼',
  timed: '·',
  undecided: '?',
};

/** The sign of a record's verdict; empty of records without one. */
export const signOf = ({ complete, outcome }: Entry): string =>
  complete ? (SIGNS[outcome ?? ''] ?? '') : '◌';

/** A record's verdict behind its sign. */
export const verdictWords = (entry: Entry): string =>
  `${signOf(entry)} ${entry.complete ? entry.verdict : 'unfinished: running, or cut off'}`.trim();

/** Fewer parts than this are listed one by one. */
const MIN_FOLDED_PARTS = 3;

/** The tag of the bench or fleet that a record is a part of. */
function tagOfWhole({ schema, tags }: Entry): string | undefined {
  const prefix = schema.startsWith('pinwise.comparison/')
    ? 'bench:'
    : schema.startsWith('pinwise.fleet-node/')
      ? 'fleet:'
      : null;
  return prefix === null
    ? undefined
    : tags.find((tag) => tag.startsWith(prefix));
}

/** An entry of a list; of many parts of one bench or fleet the newest, and how many others are not listed. */
export interface Folded {
  entry: Entry;
  others: number;
  tag: string | undefined;
}

/** A list without the parts of benches and fleets; with them if their tag was requested. */
export function foldParts(
  entries: readonly Entry[],
  asked: string | undefined,
): Folded[] {
  const foldedTag = (entry: Entry): string | undefined => {
    const tag = tagOfWhole(entry);
    return tag === asked ? undefined : tag;
  };
  const parts = new Map(tally(entries.map(foldedTag)));
  const seen = new Set<string>();
  return filterMap(entries, (entry): Folded | null => {
    const tag = foldedTag(entry);
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

/** A machine or program that was not what it had been. */
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

/** A figure's values per host, oldest first, and the times when the machine changed. */
export function overTime(
  entries: readonly Entry[],
  wanted: string | null,
): OverTime {
  const dated = entries
    .filter((entry) => Number.isFinite(timeOf(entry)))
    .sort((a, b) => timeOf(a) - timeOf(b));
  const names = dated.flatMap(({ figures }) => figures.map(({ name }) => name));
  const figures = tally(names).map(([name]) => name);
  const name =
    wanted !== null && figures.includes(wanted) ? wanted : figures[0];
  const points = filterMap(dated, (entry): Point | null => {
    const figure = entry.figures.find((f) => f.name === name);
    return figure && typeof figure.value === 'number'
      ? { entry, time: timeOf(entry), figure }
      : null;
  });
  const hosts = groupBy(points, ({ entry }) => entry.host);
  return {
    figures,
    hosts: [...hosts].map(([host, points]) => ({ host, points })),
    changes: changesOf(dated),
  };
}

/** The times when a host's machine, or the program of a question, differs from the record
 * before; unknown values are not changes. */
export function changesOf(oldestFirst: readonly Entry[]): Change[] {
  const last = new Map<string, string>();
  const changes: Change[] = [];
  for (const entry of oldestFirst) {
    const { host, machine, program, subject } = entry;
    /** What was known before, which this replaces. */
    const before = (what: string, now: string | null): string | null => {
      const known = last.get(`${what}\n${host}`) ?? now;
      if (now !== null) last.set(`${what}\n${host}`, now);
      return known === now ? null : known;
    };
    const other = before('machine', machine);
    const built = before(`program of ${subject}`, program);
    const words = [
      ...(other !== null && machine !== null
        ? [changeWords(other, machine)]
        : []),
      ...(built !== null && program !== null
        ? [`program ${shorten(built)} → ${shorten(program)}`]
        : []),
    ];
    if (words.length > 0)
      changes.push({ host, time: timeOf(entry), words: words.join(', ') });
  }
  return changes;
}

/** Hashes with enough digits to differ. */
const shorten = (program: string): string =>
  program.replace(/\w{8}\w+/g, (hash) => hash.slice(0, 8));

const PARTS = [
  ['shape ', 'shape'],
  ['kernel ', 'kernel'],
  ['microcode ', 'microcode'],
  ['on ', 'hypervisor'],
] as const;

/** Milliseconds since 1970 from which on and up to which something is shown. */
export type Stretch = readonly [from: number, to: number];

/** The stretch of time that an address holds. */
export function stretchOf(query: URLSearchParams): Stretch | null {
  const [from, to] = [query.get('from'), query.get('to')].map((text) =>
    Date.parse(text ?? ''),
  ) as [number, number];
  return from < to ? [from, to] : null;
}

/** The part of a plot over time within a stretch; each host's figures and changes. */
export function within(data: OverTime, stretch: Stretch | null): OverTime {
  if (stretch === null) return data;
  const isIn = ({ time }: { time: number }): boolean =>
    time >= stretch[0] && time <= stretch[1];
  return {
    figures: data.figures,
    hosts: data.hosts
      .map(({ host, points }) => ({ host, points: points.filter(isIn) }))
      .filter((host) => host.points.length > 0),
    changes: data.changes.filter(isIn),
  };
}

/** A question that a host was asked several times: its first figure over time. */
export interface Question {
  subject: string;
  host: string;
  figure: string;
  points: Point[];
  changes: Change[];
}

/** Questions that hosts were asked more than once, those asked most often first. */
export function questionsOf(entries: readonly Entry[]): Question[] {
  return subjectsOf(entries)
    .flatMap((subject) => {
      const data = overTime(
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

/** Why two records cannot be compared; empty if they can. */
export function whyNot(a: Entry, b: Entry): string {
  const [kind, other] = [kindWords(a.schema), kindWords(b.schema)];
  if (kind !== other) return `is a ${other}, the chosen one a ${kind}`;
  if (a.figures.length === 0 || b.figures.length === 0) return '';
  const names = new Set(a.figures.map((figure) => figure.name));
  return b.figures.some((figure) => names.has(figure.name))
    ? ''
    : 'has no figure in common with the chosen one';
}

/** "EPYC, shape ab, kernel 6.1" taken apart; what has no prefix is the CPU's model. */
export function machineParts(machine: string): Map<string, string> {
  const parts = new Map<string, string>();
  const model: string[] = [];
  for (const piece of machine.split(', ')) {
    const known = PARTS.find(([prefix]) => piece.startsWith(prefix));
    if (known) parts.set(known[1], piece.slice(known[0].length));
    else model.push(piece);
  }
  if (model.length > 0) parts.set('CPU', model.join(', '));
  return parts;
}

/** What changed from one machine to another: "kernel 6.1 → 6.2". */
export function changeWords(before: string, after: string): string {
  const [a, b] = [machineParts(before), machineParts(after)];
  const names = ['CPU', ...PARTS.map(([, name]) => name)];
  return names
    .filter((name) => a.get(name) !== b.get(name))
    .map(
      (name) =>
        `${name} ${a.get(name) ?? 'unknown'} → ${b.get(name) ?? 'unknown'}`,
    )
    .join(', ');
}

/** Questions that several of the records ask, most frequent first. */
export function subjectsOf(entries: readonly Entry[]): string[] {
  const asked = entries.filter(({ figures }) => figures.length > 0);
  return tally(filterMap(asked, ({ subject }) => subject))
    .filter(([, times]) => times > 1)
    .sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]))
    .map(([subject]) => subject);
}

/** Two chosen records, the older first. */
export function oldestFirst(a: Entry, b: Entry): [Entry, Entry] {
  return a.time <= b.time ? [a, b] : [b, a];
}

/** For each step the change that it is part of, by its place. */
export function changesOfSteps({
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
