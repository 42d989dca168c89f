// The interface to records: inlined in a report file, or fetched from the local site.

import type { EffectRecord, MetricRecord } from './records';

/** A line of the history. */
export interface Entry {
  id: string;
  schema: string;
  /** RFC 3339 in UTC. */
  time: string;
  host: string;
  title: string;
  verdict: string;
  complete: boolean;
  tags: string[];
  /** What the record is about, equal for records that can be followed over time. */
  subject: string | null;
  /** Machine identity: changes of it are marked over time. */
  machine: string | null;
  /** Hashes of the programs' files: changes of them are marked as well. */
  program: string | null;
  /** Its verdict, in the verdict's own word. */
  outcome: string | null;
  /** The best arm of a comparison, if it is recommended. */
  best?: string;
  /** The arm with which a comparison compares the others. */
  baseline?: string;
  /** Headline figures, for plots over time. */
  figures: Figure[];
}

/** A headline figure of a record. */
export interface Figure {
  /** Such as an arm's name. */
  name: string;
  unit: string;
  value: number;
  low: number | null;
  high: number | null;
  /** An arm's change against the comparison's baseline, per cent, as its record judges it. */
  change?: Pick<Figure, 'value' | 'low' | 'high'>;
}

/** A benchmark from commit to commit, by gates between them. */
export interface GateHistory {
  benchmark: string;
  suite: string;
  /** The gate's, or CPU time if that is known better. */
  metric: MetricRecord;
  sentence: string;
  method: string;
  /** Oldest first. */
  steps: GateStep[];
  changes: GateChange[];
}

/** Two commits of a history. */
export interface CommitRange {
  base: string;
  head: string;
  effect: EffectRecord;
}

export interface GateStep extends CommitRange {
  records: string[];
  started: string;
  since_first: EffectRecord;
}

/** A range of commits over which the figure changed. */
export interface GateChange extends CommitRange {
  steps: number;
  is_worse: boolean;
  sentence: string;
}

/** Filters of the history; an absent one lets everything through. */
export interface Filter {
  host?: string;
  schema?: string;
  tag?: string;
  subject?: string;
  /** Words that the title, host or verdict contain. */
  text?: string;
  limit?: number;
  offset?: number;
}

export interface Listing {
  records: Entry[];
  /** Records that the filter lets through, beyond `limit` too. */
  total: number;
  /** Values that filters can take, over all records. */
  hosts: string[];
  schemas: string[];
  tags: string[];
}

/** A record of any schema, as stored. */
export interface AnyRecord {
  schema: string;
  id?: string;
  [field: string]: unknown;
}

/** An error that the page shows: one sentence and what to do. */
export class PageError extends Error {
  constructor(
    message: string,
    readonly hint = '',
  ) {
    super(message);
  }
}

/** Something that happened to a record that is being watched. */
export type Change =
  | { kind: 'record'; record: AnyRecord }
  /** The record has ended; an incomplete one was cut off. */
  | { kind: 'ended'; isComplete: boolean }
  | { kind: 'lost'; reason: string };

export interface Source {
  readonly kind: 'file' | 'site';
  list(filter: Filter): Promise<Listing>;
  load(id: string): Promise<AnyRecord>;
  /** The record's JSON as it is stored. */
  text(id: string): Promise<string>;
  /** May a record of this id be opened here? A site is not asked. */
  has(id: string): boolean;
  /** Compares two records; a file has the comparisons of some pairs inlined. */
  diff(a: string, b: string): Promise<AnyRecord>;
  /** The history of a benchmark over the gates of many commits; null if there is none. */
  gates(subject: string, benchmark: string): Promise<GateHistory | null>;
  /** Can these two be compared here? */
  canDiff(a: string, b: string): boolean;
  /** Calls back whenever the record grows, until the returned function is called. */
  watch(id: string, onChange: (change: Change) => void): () => void;
  /** Calls back when any record was added, removed or finished, with the state of the
   * connection. */
  watchList(onChange: () => void, onState: (words: string) => void): () => void;
}
