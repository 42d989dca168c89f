// What the view of a bench reads of `pinwise.bench/1`.

import type { Finding, HostRecord } from '../../records';

type Maybe<T> = T | null | undefined;

export interface Estimate {
  value?: Maybe<number>;
  low?: Maybe<number>;
  high?: Maybe<number>;
}

export interface BenchCell {
  name: string;
  threads?: Maybe<number>;
  family?: string;
  placement?: string;
  cpus?: string;
  isa?: Maybe<string>;
  size?: Maybe<number>;
  seconds?: Maybe<Estimate>;
  rate?: Maybe<Estimate>;
  bytes_per_s?: Maybe<Estimate>;
  speed_up?: Maybe<Estimate>;
  efficiency?: Maybe<number>;
  invalid?: Maybe<string>;
}

export interface BenchKernel {
  kernel: string;
  group?: string;
  question?: string;
  comparison?: string;
  operation?: string;
  cache_fit?: string;
  baseline?: string;
  cells?: BenchCell[];
  smt_yield?: Maybe<Estimate>;
  confidence?: Maybe<number>;
  blocks?: Maybe<number>;
  stopped?: Maybe<string>;
}

export interface BenchRecord {
  schema: string;
  id?: string;
  pinwise_version?: string;
  host?: Maybe<HostRecord>;
  seed?: Maybe<number>;
  suite?: Maybe<string>;
  budget_s?: Maybe<number>;
  min_effect?: Maybe<number>;
  smt?: Maybe<{ state?: string; sentence?: string; advice?: string }>;
  kernels?: BenchKernel[];
  scores?: {
    group?: string;
    question?: string;
    cell?: string;
    reference?: string;
    score?: Maybe<number>;
    kernels?: string[];
  }[];
  conclusions?: string[];
  findings?: Finding[];
  planned?: Maybe<number>;
  stopped?: Maybe<string>;
  elapsed_s?: Maybe<number>;
  tags?: string[];
}
