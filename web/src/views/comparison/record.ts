// What the view of a comparison reads of `pinwise.comparison/1`. Old records
// lack some of it, so that nothing but names is taken for granted.

import type {
  CommandRecord as Command,
  HeadlineRecord as Headline,
} from '../../records';
import type { Finding, HostRecord } from '../../records';

type Maybe<T> = T | null | undefined;

export interface Run {
  block?: number;
  order?: number;
  phase?: string;
  at_s?: number;
  wall_s?: number;
  threads?: Maybe<number>;
  granted_cpus?: Maybe<string>;
  foreign_cpu_s?: Maybe<number>;
  steal_s?: Maybe<number>;
  metric?: { value?: Maybe<number>; cost?: Maybe<number> };
}

export interface Workload {
  input?: Maybe<string>;
  environment?: Maybe<[string, string][]>;
  prepare?: Maybe<string>;
  cleanup?: Maybe<string>;
  timeout_s?: Maybe<number>;
  recipe?: Maybe<string>;
  verify?: Maybe<string>;
  expect?: Maybe<string>;
}

export interface Placement {
  name?: string;
  kind?: string;
  memory?: Maybe<string>;
  memory_nodes?: Maybe<number[]>;
  packages?: Maybe<number>;
  numa_nodes?: Maybe<number>;
  llcs?: Maybe<number>;
  cores?: Maybe<number>;
}

export interface ArmTrace {
  tier?: string;
  elapsed_s?: Maybe<number>;
  sentence?: string;
  totals?: Maybe<{
    switches?: Maybe<number>;
    cpu_s?: Maybe<number>;
    migrations?: Maybe<Record<string, number>>;
  }>;
  waits?: Maybe<{ total_s?: Maybe<number> }>;
  avoidable_smt_sharing?: Maybe<{ percent?: Maybe<number> }>;
  idle_while_waiting?: Maybe<{ percent?: Maybe<number> }>;
}

export interface Arm {
  name: string;
  command?: string[];
  workload?: Maybe<Workload>;
  placement?: Maybe<Placement>;
  cpus?: Maybe<string>;
  same_as?: Maybe<string[]>;
  runs?: Run[];
  other_runs?: Run[];
  estimate?: Maybe<{
    value?: Maybe<number>;
    low?: Maybe<number>;
    high?: Maybe<number>;
  }>;
  spread?: Maybe<{ cv?: Maybe<number> }>;
  eliminated?: Maybe<boolean>;
  invalid?: Maybe<string>;
  standing?: string;
  trace?: Maybe<ArmTrace>;
}

/** A change of the metric, in its own direction and ready to be shown. */
export interface Effect {
  value?: Maybe<number>;
  low?: Maybe<number>;
  high?: Maybe<number>;
  text?: string;
  interval?: string;
}

export interface Contrast {
  arm: string;
  effect?: Maybe<Effect>;
  p_adjusted?: Maybe<number>;
  verdict?: string;
  cpu_time_ratio?: Maybe<number>;
  totals?: Maybe<{ mean?: string; p90?: string }>;
  others?: Maybe<{ judge?: string; effect?: Maybe<Effect> }[]>;
  depends_on_load?: Maybe<boolean>;
  depends_on_tail?: Maybe<boolean>;
  depends_on_order?: Maybe<boolean>;
  depends_on_time?: Maybe<boolean>;
  spread_ratio?: Maybe<number>;
  spread_low?: Maybe<number>;
  spread_high?: Maybe<number>;
}

export interface ComparisonRecord {
  schema: string;
  id?: string;
  study?: string;
  pinwise_version?: string;
  started?: string;
  host?: Maybe<HostRecord>;
  seed?: Maybe<number>;
  again?: Maybe<string>;
  metric?: { name?: string; unit?: string; better?: string; label?: string };
  plan?: Maybe<{
    alpha?: Maybe<number>;
    min_effect?: Maybe<number>;
    precision?: Maybe<number>;
    budget_s?: Maybe<number>;
    max_runs?: Maybe<number>;
    warmup_blocks?: Maybe<number>;
    judge?: Maybe<string>;
    score?: Maybe<string>;
    screened_arms?: Maybe<number>;
  }>;
  baseline?: string;
  arms?: Arm[];
  contrasts?: Contrast[];
  best?: Maybe<string>;
  verdict?: Maybe<{
    kind?: string;
    sentence?: string;
    headline?: Maybe<Headline>;
    advice?: string;
    commands?: Command[];
    condition?: string;
    steadiness?: Maybe<string>;
    beside?: Maybe<string>;
  }>;
  findings?: Finding[];
  stopped?: Maybe<string>;
  blocks?: Maybe<number>;
  elapsed_s?: Maybe<number>;
  tags?: string[];
}
