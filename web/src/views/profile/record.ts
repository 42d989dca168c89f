// The fields of profiles and of their differences that the views read.

import type { HostRecord } from '../../records';
import type { Maybe } from '../trace/record';

export interface Amount {
  samples: number;
  cpu_s: number;
  cpu_s_per_unit?: Maybe<number>;
}

export interface CalledFunction {
  name: string;
  module?: Maybe<string>;
  kind: string;
}

export interface ProfileRecord {
  host?: Maybe<HostRecord>;
  event?: string;
  hz?: number;
  wall_s?: number;
  own_cpu_s?: number;
  lost?: number;
  work?: Maybe<{ unit: string; count: number; metric?: Maybe<string> }>;
  pause?: Maybe<{
    cpu: number;
    ns: number;
    low_ns?: Maybe<number>;
    high_ns?: Maybe<number>;
  }>;
  runs?: Maybe<
    { wall_s: number; samples: number; cpu_s: number; units: number }[]
  >;
  total?: Maybe<Amount>;
  kernel?: Maybe<Amount>;
  waits?: Maybe<Amount>;
  stacks?: Maybe<{ by: string; broken: Amount; mean_frames: number }>;
  functions?: Maybe<FunctionRow[]>;
  functions_left_out?: Maybe<{ count: number; own: Amount }>;
  threads?: Maybe<
    {
      name: string;
      thread?: Maybe<number>;
      threads: number;
      sampled: Amount;
      waits: Amount;
      cpu_s?: Maybe<number>;
    }[]
  >;
  instructions?: Maybe<Spot[]>;
  calls?: Maybe<{
    functions: CalledFunction[];
    nodes: {
      function: number;
      parent: Maybe<number>;
      samples: number;
      cpu_s: number;
    }[];
    left_out?: Maybe<Amount>;
  }>;
  sentence?: string;
  notes?: Maybe<string[]>;
}

export interface FunctionRow extends CalledFunction {
  own: Amount;
  own_error_s: number;
  total: Amount;
  waits: Amount;
}

export interface Spot extends CalledFunction {
  function: string;
  offset?: Maybe<number>;
  source?: Maybe<string>;
  address: number;
  own: Amount;
  shown: Amount;
  lines: {
    address: number;
    text: string;
    own: Amount;
    is_hint: boolean;
    waits: boolean;
  }[];
}

export interface Change {
  before_samples: number;
  after_samples: number;
  before_s: number;
  after_s: number;
  delta_s: number;
  low_s: number;
  high_s: number;
  is_noise: boolean;
}

export interface Side {
  id: string;
  title: string;
  host: string;
  units: number;
  samples: number;
  cpu_s: number;
  pause_ns?: Maybe<number>;
}

export interface ProfileDiff {
  before: Side;
  after: Side;
  unit: string;
  total: Change;
  waits: Change;
  pausing?: Maybe<{
    before_pauses: number;
    after_pauses: number;
    by_more_s: number;
    by_longer_s: number;
  }>;
  functions?: Maybe<
    (CalledFunction & {
      seen: string;
      own: Change;
      total: Change;
      waits: Change;
    })[]
  >;
  functions_left_out?: number;
  calls?: Maybe<(CalledFunction & { parent: Maybe<number>; total: Change })[]>;
  sentences?: Maybe<string[]>;
  notes?: Maybe<string[]>;
}
