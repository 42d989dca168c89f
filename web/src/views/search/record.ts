// What the view of a search reads of `pinwise.search/1`.

import type {
  CommandRecord as Command,
  HeadlineRecord as Headline,
} from '../../records';
import type { Finding, HostRecord } from '../../records';
import type { Effect } from '../comparison/record';

type Maybe<T> = T | null | undefined;

export interface SearchArm {
  name: string;
  placement?: string;
  threads?: Maybe<number>;
  cpus?: string;
  packages?: number;
  numa_nodes?: number;
  llcs?: number;
  cores?: number;
  cpu_count?: number;
  refined_from?: Maybe<string>;
  invalid?: Maybe<string>;
}

export interface Expected {
  predicted?: Maybe<number>;
  low?: Maybe<number>;
  high?: Maybe<number>;
}

export interface Prediction extends Expected {
  arm: string;
  ratio?: Maybe<number>;
  change?: string;
  runs?: number;
  measured?: Maybe<{
    value?: Maybe<number>;
    low?: Maybe<number>;
    high?: Maybe<number>;
  }>;
  foretold?: Maybe<Expected & { measured?: Maybe<number> }>;
  beats_best?: Maybe<number>;
  truth?: Maybe<number>;
}

export interface Progress extends Expected {
  runs?: number;
  leader?: string;
  doubt?: Maybe<number>;
  true_regret?: Maybe<number>;
}

export interface Feature {
  name?: string;
  meaning?: string;
  change?: Maybe<Effect>;
  is_clear?: boolean;
}

export interface SearchRecord {
  schema: string;
  id?: string;
  pinwise_version?: string;
  started?: string;
  host?: Maybe<HostRecord>;
  seed?: Maybe<number>;
  command?: string[];
  again?: Maybe<string>;
  metric?: { name?: string; unit?: string; better?: string; label?: string };
  plan?: Maybe<{
    threads?: number[];
    within?: Maybe<number>;
    least_within?: Maybe<number>;
    error?: Maybe<number>;
    max_runs?: Maybe<number>;
    budget_s?: Maybe<number>;
    confirmation_pairs?: Maybe<number>;
  }>;
  space?: { threads?: number; placements?: string; shapes?: number }[];
  arms?: SearchArm[];
  runs?: unknown[];
  predictions?: Prediction[];
  progress?: Progress[];
  model?: Maybe<{
    features?: Feature[];
    noise_sd?: Maybe<number>;
    unexplained_sd?: Maybe<number>;
    inflation?: Maybe<number>;
    foretold_error?: Maybe<number>;
    judgement?: Maybe<string>;
  }>;
  best?: Maybe<string>;
  runs_used?: Maybe<number>;
  confirmation?: Maybe<{
    sentence?: string;
  }>;
  least?: Maybe<{
    arm?: string;
    sentence?: string;
    basis?: string;
    commands?: Command[];
  }>;
  verdict?: Maybe<{
    kind?: string;
    sentence?: string;
    headline?: Maybe<Headline>;
    beside?: string[];
    advice?: string;
    commands?: Command[];
    condition?: string;
  }>;
  true_regret?: Maybe<number>;
  truth?: Maybe<{
    best?: string;
    cost?: Maybe<number>;
    default_ratio?: Maybe<number>;
    prediction_error?: Maybe<number>;
    coverage?: Maybe<number>;
  }>;
  findings?: Finding[];
  stopped?: Maybe<string>;
  elapsed_s?: Maybe<number>;
  tags?: string[];
}
