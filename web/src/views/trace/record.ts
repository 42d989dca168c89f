// The fields of a trace record that the view reads. Records of older versions
// lack some; what the source could not tell is null.

import type { Finding, HostRecord } from '../../records';

export type Maybe<T> = T | null | undefined;

export interface TraceRecord {
  tier?: Maybe<string>;
  elapsed_s?: Maybe<number>;
  host?: Maybe<HostRecord>;
  source?: Maybe<{
    kind?: string;
    placement?: string;
    cpus?: string;
    path?: string;
  }>;
  cost?: Maybe<{
    ns_per_switch?: Maybe<number>;
    percent_of_cpu?: Maybe<number>;
    own_cpu_s?: Maybe<number>;
  }>;
  totals?: Maybe<Totals>;
  waits?: Maybe<Waits>;
  avoidable_smt_sharing?: Maybe<Sharing>;
  lower_bounds?: Maybe<string[]>;
  idle_while_waiting?: Maybe<{
    seconds?: Maybe<number>;
    percent?: Maybe<number>;
    episodes?: Maybe<number>;
    longest_s?: Maybe<number>;
    note?: Maybe<string>;
  }>;
  lost?: Maybe<{
    records?: number;
    windows?: number;
    seconds?: number;
    contradictions?: number;
  }>;
  threads?: Maybe<ThreadRow[]>;
  threads_left_out?: Maybe<number>;
  cpus?: Maybe<
    {
      cpu: number;
      own_s: number;
      foreign_s?: Maybe<number>;
      idle_s?: Maybe<number>;
      switches?: Maybe<number>;
    }[]
  >;
  cores?: Maybe<
    {
      core: number;
      cpus: string;
      own_s: number;
      busy_s?: Maybe<number>;
      shared_s?: Maybe<number>;
    }[]
  >;
  timeline?: Maybe<Timeline>;
  findings?: Maybe<Finding[]>;
  notes?: Maybe<string[]>;
  exit?: Maybe<number>;
}

export type Migrations = Partial<
  Record<'smt' | 'core' | 'llc' | 'numa' | 'package' | 'unknown', number>
>;

export interface Totals {
  threads?: number;
  processes?: number;
  switches?: Maybe<number>;
  preemptions?: Maybe<number>;
  wakeups?: Maybe<number>;
  migrations?: Maybe<Migrations>;
  cpu_s?: number;
  foreign_cpu_s?: Maybe<number>;
  idle_s?: Maybe<number>;
  events?: number;
}

export interface Waits {
  total_s?: Maybe<number>;
  count?: Maybe<number>;
  p50_s?: Maybe<number>;
  p99_s?: Maybe<number>;
  longest_s?: Maybe<number>;
  because?: Maybe<Record<string, number>>;
}

export interface Sharing {
  shared_s?: Maybe<number>;
  shared_percent?: Maybe<number>;
  seconds?: Maybe<number>;
  percent?: Maybe<number>;
  by?: Maybe<Record<string, number>>;
  note?: Maybe<string>;
}

export interface ThreadRow {
  thread: number;
  process?: Maybe<number>;
  name: string;
  cpu_s: number;
  wait_s?: Maybe<number>;
  switches?: Maybe<number>;
  preemptions?: Maybe<number>;
  migrations?: Maybe<Migrations>;
  shared_s?: Maybe<number>;
  cpus?: Maybe<{ cpu: number; cpu_s: number }[]>;
  allowed?: Maybe<string>;
}

export interface Timeline {
  slices?: Maybe<
    {
      thread: number;
      cpu: number;
      start_s: number;
      length_s: number;
      end: string;
    }[]
  >;
  packed?: Maybe<{
    form: string;
    count: number;
    threads: number[];
    ends: string[];
    cpus: { cpu: number; count: number; bytes: string }[];
  }>;
  most_packed?: number;
  waits?: Maybe<{
    form: string;
    count: number;
    shortest_ns: number;
    left_out: LeftOut;
    threads: number[];
    causes: string[];
    bytes: string;
  }>;
  sharing?: Maybe<{
    form: string;
    count: number;
    left_out: LeftOut;
    causes: string[];
    bytes: string;
  }>;
  span_s?: number;
  spans?: Maybe<{ cpu: number; own: number[]; foreign: number[] }[]>;
}

export interface LeftOut {
  count: number;
  ns: number;
}
