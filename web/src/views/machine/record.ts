// The fields of "pinwise.topology/1" that are drawn, read with care: what a
// record lacks is null or empty here, whatever stands in its place.

import { parseCpus } from '../../cpus';
import type { Fields } from '../../fields';
import {
  each,
  fields,
  items,
  list,
  number,
  numbers,
  text,
  texts,
} from '../../fields';
import type { AnyRecord } from '../../source';

/** A median of batches with its interval. */
export interface Measure {
  value: number;
  low: number | null;
  high: number | null;
}

export interface Cpu {
  cpu: number;
  core: number | null;
  llc: number | null;
  package: number | null;
  node: number | null;
  kind: number | null;
  online: boolean;
  allowed: boolean;
}

export interface Cache {
  level: number;
  type: string;
  bytes: number | null;
  cpus: number[];
}

export interface NumaNode {
  node: number;
  cpus: number[];
  bytes: number | null;
  allowed: boolean;
}

export interface Verdict {
  level: string;
  verdict: string;
  claim: string;
  measured: string;
  confidence: number | null;
  advice: string;
}

export interface Level {
  kind: string;
  groups: number[][];
  insideNs: number | null;
  outsideNs: number | null;
  confidence: number | null;
  evidence: string;
}

export interface Pair {
  a: number;
  b: number;
  latencies: { home: number | null; measure: Measure }[];
  contention: Measure | null;
}

export interface DriftPair {
  a: number;
  b: number;
  states: {
    kind: string;
    latencyNs: number | null;
    share: number | null;
    visits: number | null;
    dwellS: number | null;
  }[];
  /** Second, nanoseconds, state. */
  samples: [number, number, number][];
}

export interface Measured {
  cpus: number[];
  latency: (number | null)[][];
  isMeasured: boolean[][];
  pairs: Pair[];
  levels: Level[];
  flat: boolean;
  cannotTell: string;
  notes: string[];
  verdicts: Verdict[];
  pause: { cpu: number; ns: Measure; cycles: Measure | null; modes: string }[];
  ladder: {
    cpu: number | null;
    points: { bytes: number; ns: Measure }[];
    plateaus: {
      level: number | null;
      ns: number;
      effective: number | null;
      reported: number | null;
    }[];
    hint: string;
  } | null;
  bandwidth: {
    stream: string;
    cpus: string;
    node: number | null;
    gbPerS: Measure;
  }[];
  loaded: {
    cpu: number | null;
    loaders: string;
    background: number;
    ns: Measure;
  }[];
  clock: Record<string, unknown>;
  scheduling: { contextSwitch: Measure | null; futexWake: Measure | null };
  drift: {
    watchedS: number | null;
    pairs: DriftPair[];
    changes: number | null;
    validS: number | null;
    sentence: string;
  } | null;
  effort: Record<string, unknown>;
  leftOut: string[];
  survey: Record<string, unknown>;
}

export interface Machine {
  host: Record<string, unknown>;
  counts: Record<string, number>;
  allowed: string;
  restrictions: { by: string; leaves: string }[];
  quota: { cpus: number; source: string } | null;
  cpus: Cpu[];
  caches: Cache[];
  nodes: NumaNode[];
  kinds: { name: string; cpus: number[] }[];
  shapeHash: string;
  contradictions: Verdict[];
  warnings: string[];
  measured: Measured | null;
}

function measure(value: unknown): Measure | null {
  const told = fields(value);
  const middle = number(told['value']);
  return middle === null
    ? null
    : { value: middle, low: number(told['low']), high: number(told['high']) };
}

/** The machine of a record. */
export function readMachine(record: AnyRecord): Machine {
  const quota = fields(record['quota']);
  const quotaCpus = number(quota['cpus']);
  const counts = Object.entries(fields(record['counts'])).filter(
    (entry): entry is [string, number] => number(entry[1]) !== null,
  );
  return {
    host: fields(record['machine']),
    counts: Object.fromEntries(counts),
    allowed: text(record['allowed']),
    restrictions: each(record['restrictions'], (r) => ({
      by: text(r['by']),
      leaves: text(r['leaves']),
    })),
    quota:
      quotaCpus === null
        ? null
        : { cpus: quotaCpus, source: text(quota['source']) },
    cpus: each(record['cpus'], readCpu),
    caches: each(record['caches'], readCache),
    nodes: each(record['numa_nodes'], readNode),
    kinds: each(record['kinds'], (k) => ({
      name: text(k['name']),
      cpus: parseCpus(text(k['cpus'])),
    })),
    shapeHash: text(record['shape_hash']),
    contradictions: each(record['contradictions'], readVerdict),
    warnings: texts(record['warnings']),
    measured: record['measured']
      ? readMeasured(fields(record['measured']))
      : null,
  };
}

function readCpu(told: Fields): Cpu | null {
  const cpu = number(told['cpu']);
  if (cpu === null) return null;
  return {
    cpu,
    core: number(told['core']),
    llc: number(told['llc']),
    package: number(told['package']),
    node: number(told['numa_node']),
    kind: number(told['kind']),
    online: told['online'] !== false,
    allowed: told['allowed'] !== false,
  };
}

function readCache(told: Fields): Cache | null {
  const level = number(told['level']);
  if (level === null) return null;
  return {
    level,
    type: text(told['type']),
    bytes: number(told['size_bytes']),
    cpus: parseCpus(text(told['cpus'])),
  };
}

function readNode(told: Fields): NumaNode | null {
  const node = number(told['node']);
  if (node === null) return null;
  return {
    node,
    cpus: parseCpus(text(told['cpus'])),
    bytes: number(told['memory_bytes']),
    allowed: told['allowed'] !== false,
  };
}

function readVerdict(told: Fields): Verdict {
  return {
    level: text(told['level']),
    verdict: text(told['verdict']) || 'contradicted',
    claim: text(told['claim']),
    measured: text(told['measured']),
    confidence: number(told['confidence']),
    advice: text(told['advice']),
  };
}

function readLevel(told: Fields): Level {
  return {
    kind: text(told['kind']),
    groups: texts(told['groups'])
      .map(parseCpus)
      .filter((group) => group.length > 0),
    insideNs: number(told['inside_ns']),
    outsideNs: number(told['outside_ns']),
    confidence: number(told['confidence']),
    evidence: text(told['evidence']),
  };
}

function readPair(told: Fields): Pair | null {
  const a = number(told['a']);
  const b = number(told['b']);
  if (a === null || b === null) return null;
  const latencies = each(told['latency_ns'], (item) => {
    const found = measure(item);
    return found && { home: number(item['home_node']), measure: found };
  });
  const contention =
    measure(told['contention_integer']) ??
    measure(told['contention_float']) ??
    measure(told['contention_spin']);
  return { a, b, latencies, contention };
}

function readDrift(told: Fields): Measured['drift'] {
  return {
    watchedS: number(told['watched_s']),
    changes: number(told['changes']),
    validS: number(told['valid_s']),
    sentence: text(told['sentence']),
    pairs: each(told['pairs'], (pair) => {
      const a = number(pair['a']);
      const b = number(pair['b']);
      if (a === null || b === null) return null;
      const states = items(pair['states']).map((s) => ({
        kind: text(s['kind']),
        latencyNs: number(s['latency_ns']),
        share: number(s['share']),
        visits: number(s['visits']),
        dwellS: number(s['median_dwell_s']),
      }));
      const samples = list(pair['samples']).flatMap(
        (sample): [number, number, number][] => {
          const [second, ns, , state] = list(sample).map(number);
          return typeof second === 'number' && typeof ns === 'number'
            ? [[second, ns, state ?? 0]]
            : [];
        },
      );
      return { a, b, states, samples };
    }),
  };
}

function readLadder(value: unknown): Measured['ladder'] {
  const told = fields(value);
  const points = each(told['points'], (point) => {
    const bytes = number(point['bytes']);
    const ns = measure(point['latency_ns']);
    return bytes !== null && bytes > 0 && ns ? { bytes, ns } : null;
  });
  if (points.length === 0) return null;
  const plateaus = each(told['plateaus'], (p) => {
    const ns =
      number(p['latency_ns']) ?? measure(p['latency_ns'])?.value ?? null;
    return ns === null
      ? null
      : {
          level: number(p['level']),
          ns,
          effective: number(p['effective_bytes']),
          reported: number(p['reported_bytes']),
        };
  });
  return {
    cpu: number(told['cpu']),
    points,
    plateaus,
    hint: text(told['hint']),
  };
}

function readModes(value: unknown): string {
  const told = fields(value);
  const low = number(told['low_ns']);
  const high = number(told['high_ns']);
  return low === null || high === null
    ? ''
    : `two costs, ${low.toFixed(1)} ns and ${high.toFixed(1)} ns`;
}

function readMeasured(told: Fields): Measured {
  const scheduling = fields(told['scheduling']);
  const effort = fields(told['effort']);
  return {
    cpus: numbers(told['cpus']),
    latency: list(told['latency_ns']).map((row) => list(row).map(number)),
    isMeasured: list(told['is_measured']).map((row) =>
      list(row).map((cell) => cell === true),
    ),
    pairs: each(told['pairs'], readPair),
    levels: items(told['levels']).map(readLevel),
    flat: told['flat'] === true,
    cannotTell: text(told['cannot_tell']),
    notes: texts(told['notes']),
    verdicts: items(told['verdicts']).map(readVerdict),
    pause: each(told['pause'], (p) => {
      const cpu = number(p['cpu']);
      const ns = measure(p['pause_ns']);
      return cpu === null || !ns
        ? null
        : {
            cpu,
            ns,
            cycles: measure(p['pause_cycles']),
            modes: readModes(p['modes']),
          };
    }),
    ladder: readLadder(told['ladder']),
    bandwidth: each(told['bandwidth'], (b) => {
      const gbPerS = measure(b['gb_per_s']);
      return (
        gbPerS && {
          stream: text(b['stream']),
          cpus: text(b['cpus']),
          node: number(b['node']),
          gbPerS,
        }
      );
    }),
    loaded: each(told['loaded_latency'], (l) => {
      const ns = measure(l['latency_ns']);
      const background =
        number(l['background_gb_per_s']) ??
        measure(l['background_gb_per_s'])?.value ??
        null;
      return ns && background !== null
        ? { cpu: number(l['cpu']), loaders: text(l['loaders']), background, ns }
        : null;
    }),
    clock: fields(told['clock']),
    scheduling: {
      contextSwitch: measure(scheduling['context_switch_ns']),
      futexWake: measure(scheduling['futex_wake_ns']),
    },
    drift: told['drift'] ? readDrift(fields(told['drift'])) : null,
    effort,
    leftOut: texts(effort['left_out']),
    survey: fields(told['survey']),
  };
}
