// What the views of the spin-wait laboratory read of `pinwise.spin-…/1`.

import type { Finding } from '../../words';

type Maybe<T> = T | null | undefined;

export interface Processor {
  name?: string;
  chip?: Maybe<string>;
  pause_ns?: Maybe<number>;
  pause_cycles?: Maybe<number>;
  ghz?: Maybe<number>;
  pause_from?: Maybe<string>;
  ghz_from?: Maybe<string>;
}

export interface Tunable {
  name?: string;
  usual?: Maybe<string>;
  how?: Maybe<string>;
}

export interface Prediction {
  algorithm: string;
  name?: string;
  versions?: string;
  cpus: number;
  total_pauses?: Maybe<number>;
  total_ms?: Maybe<number>;
  longest_pauses?: Maybe<number>;
  longest_ms?: Maybe<number>;
  blind_gap_pauses?: Maybe<number>;
  blind_gap_ms?: Maybe<number>;
  wasted_cpu_ms?: Maybe<number>;
  never_parks?: boolean;
  immune?: boolean;
  unit?: string;
  then?: Maybe<string>;
  tunables?: Maybe<Tunable[]>;
  evidence?: Maybe<string>;
  source?: Maybe<string>;
  note?: Maybe<string>;
}

export interface Move {
  algorithm: string;
  cpus: number;
  from_ms?: Maybe<number>;
  to_ms?: Maybe<number>;
  ratio?: Maybe<number>;
  from_blind_gap_ms?: Maybe<number>;
  to_blind_gap_ms?: Maybe<number>;
}

export interface PredictRecord {
  schema: string;
  processor?: Processor;
  from?: Maybe<Processor>;
  predictions?: Prediction[];
  moves?: Maybe<Move[]>;
  cliffs?: Maybe<{ algorithm: string; changes_at?: number[] }[]>;
}

export interface Waited {
  lateness_us?: Maybe<number>;
  lateness_low_us?: Maybe<number>;
  lateness_high_us?: Maybe<number>;
  seconds_per_100_items?: Maybe<number>;
  waiter_cpu_s_per_100_items?: Maybe<number>;
  hints?: Maybe<number>;
  parks?: Maybe<number>;
}

export interface ReplayCell {
  hold_ms?: Maybe<number>;
  delay_ms?: Maybe<number>;
  predicted?: Maybe<Waited>;
  measured?: Maybe<Waited>;
  error_percent?: Maybe<number>;
  cliff_percent?: Maybe<number>;
  unstable?: boolean;
  items?: number;
}

export interface Contention {
  threads?: number;
  operations_per_cpu_s?: Maybe<number>;
  spinning_share?: Maybe<number>;
  longest_ms?: Maybe<number>;
  parks_per_1000?: Maybe<number>;
}

export interface Replayed {
  algorithm: string;
  name?: string;
  total_hints?: Maybe<number>;
  blind_gap_hints?: Maybe<number>;
  ends?: string;
  cells?: ReplayCell[];
  contention?: Contention[];
  median_error_percent?: Maybe<number>;
  stable_cells?: Maybe<number>;
}

export interface ReplayRecord {
  schema: string;
  started?: string;
  host?: Maybe<Record<string, unknown>>;
  experiment?: string;
  chip?: Maybe<string>;
  cpus_assumed?: Maybe<number>;
  hint?: Maybe<{
    own_ns?: Maybe<number>;
    wanted_ns?: Maybe<number>;
    achieved_ns?: Maybe<number>;
    made?: Maybe<string>;
  }>;
  wake_ns?: Maybe<number>;
  hold_ms?: Maybe<number>;
  items?: Maybe<number>;
  repeats?: Maybe<number>;
  realtime?: boolean;
  algorithms?: Replayed[];
  conclusions?: string[];
  notes?: string[];
}

export interface PauseCpu {
  cpu: number;
  pause_ns?: Maybe<number>;
  pause_ns_low?: Maybe<number>;
  pause_ns_high?: Maybe<number>;
  pause_cycles?: Maybe<number>;
  pause_cycles_low?: Maybe<number>;
  pause_cycles_high?: Maybe<number>;
  method?: Maybe<string>;
  ghz?: Maybe<number>;
  levels?: Maybe<
    {
      pause_ns?: Maybe<number>;
      pause_cycles?: Maybe<number>;
      share?: Maybe<number>;
    }[]
  >;
  hints?: Maybe<
    { hint?: string; ns?: Maybe<number>; cycles?: Maybe<number> }[]
  >;
}

export interface PauseRecord {
  schema: string;
  host?: Maybe<Record<string, unknown>>;
  instruction?: string;
  cpus?: PauseCpu[];
  chips?: {
    name?: string;
    cpus?: string;
    published_low?: Maybe<number>;
    published_high?: Maybe<number>;
    measured_cycles?: Maybe<number>;
    agrees?: Maybe<boolean>;
    cheaper_chips?: Maybe<number>;
    known_chips?: Maybe<number>;
    source?: string;
    sentence?: string;
  }[];
  check?: Maybe<{ is_fine?: boolean; sentence?: string }>;
  counter_unavailable?: Maybe<string>;
  notes?: string[];
  spent_s?: Maybe<number>;
}

export interface Place {
  kind?: string;
  function?: Maybe<string>;
  module?: Maybe<string>;
  address?: Maybe<number>;
  cpu_s?: Maybe<number>;
  share?: Maybe<number>;
  samples?: Maybe<number>;
  threads?: Maybe<number>;
  gap_hints?: Maybe<number>;
  hint_ns_seen?: Maybe<number>;
  callers?: Maybe<{ functions?: (string | null)[]; cpu_s?: Maybe<number> }[]>;
  algorithms?: Maybe<
    {
      algorithm?: string;
      name?: Maybe<string>;
      strength?: string;
      why?: string;
      tunables?: Maybe<string[]>;
    }[]
  >;
  code?: Maybe<string[]>;
}

export interface AttachRecord {
  schema: string;
  id?: string;
  started?: string;
  host?: Maybe<Record<string, unknown>>;
  source?: Maybe<{
    kind?: string;
    command?: string[];
    placement?: string;
    pid?: number;
    name?: string;
  }>;
  event?: string;
  hz?: Maybe<number>;
  wall_s?: Maybe<number>;
  samples?: Maybe<number>;
  cpu_s?: Maybe<number>;
  own_cpu_s?: Maybe<number>;
  lost?: Maybe<number>;
  shares?: Maybe<Record<string, number>>;
  spin_share?: Maybe<number>;
  spin_share_error?: Maybe<number>;
  pause_ns?: Maybe<number>;
  pauses_per_s?: Maybe<number>;
  places?: Place[];
  threads?: {
    pid?: number;
    tid?: number;
    name?: string;
    cpu_s?: Maybe<number>;
    spin_s?: Maybe<number>;
  }[];
  findings?: Finding[];
  notes?: string[];
  tags?: string[];
}

export interface AdviceRecord {
  schema: string;
  processor?: Processor;
  cpus?: Maybe<number>;
  futex_wake_ns?: Maybe<number>;
  context_switch_ns?: Maybe<number>;
  budget_ns?: Maybe<number>;
  budget_pauses?: Maybe<number>;
  rule?: string;
  advice?: {
    runtime?: string;
    setting?: string;
    how?: string;
    usual?: Maybe<string>;
    usual_ns?: Maybe<number>;
    suggested?: Maybe<string>;
    suggested_ns?: Maybe<number>;
    reasoning?: string;
    verify?: Maybe<string>;
  }[];
  notes?: string[];
}

export interface ScanRecord {
  schema: string;
  binaries?: {
    path?: string;
    arch?: string;
    hints?: Maybe<number>;
    code_bytes?: Maybe<number>;
  }[];
  chips?: { id: string; pause_ns?: Maybe<number> }[];
  max_blind_gap_ns?: Maybe<number>;
  passed?: Maybe<boolean>;
  loops?: {
    binary?: number;
    address?: string;
    function?: Maybe<string>;
    kind?: string;
    hints_per_turn?: Maybe<number>;
    gap_hints?: Maybe<number>;
    gap_from?: Maybe<string>;
    gaps?: Maybe<{ chip?: string; ns?: Maybe<number>; exceeds?: boolean }[]>;
    algorithms?: Maybe<{ id?: string; reason?: string }[]>;
    fails?: Maybe<boolean>;
  }[];
}
