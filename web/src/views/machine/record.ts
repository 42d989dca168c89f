// The fields of "pinwise.topology/1" that are drawn, read with care: what a
// record lacks is null or empty here, whatever stands in its place.

import { parseCpus } from '../../cpus';
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
import type {
  CacheRecord,
  Contradiction,
  CpuRecord,
  DriftPair as DriftPairRecord,
  DriftRecord,
  LadderRecord,
  LevelVerdict,
  Measured as MeasuredRecord,
  MeasuredLevel,
  Median,
  Modes,
  NodeRecord,
  PairRecord,
  TopologyRecord,
} from '../../records';
import type { AnyRecord } from '../../source';

export type Machine = ReturnType<typeof readMachine>;
export type Measured = ReturnType<typeof readMeasured>;
/** A median of batches with its interval. */
export type Measure = NonNullable<ReturnType<typeof measure>>;
export type Cpu = NonNullable<ReturnType<typeof readCpu>>;
export type Cache = NonNullable<ReturnType<typeof readCache>>;
export type Level = ReturnType<typeof readLevel>;
export type Verdict = ReturnType<typeof readVerdict>;
export type DriftPair = NonNullable<ReturnType<typeof readDriftPair>>;

function measure(value: Median | null | undefined) {
  const told = fields(value);
  const middle = number(told.value);
  return middle === null
    ? null
    : { value: middle, low: number(told.low), high: number(told.high) };
}

/** The machine of a record. */
export function readMachine(any: AnyRecord) {
  const record = any as TopologyRecord;
  const quota = fields(record.quota);
  const quotaCpus = number(quota.cpus);
  return {
    host: fields(record.machine),
    counts: fields(record.counts),
    allowed: text(record.allowed),
    restrictions: each(record.restrictions, (r) => ({
      by: text(r.by),
      leaves: text(r.leaves),
    })),
    quota:
      quotaCpus === null
        ? null
        : { cpus: quotaCpus, source: text(quota.source) },
    cpus: each(record.cpus, readCpu),
    caches: each(record.caches, readCache),
    nodes: each(record.numa_nodes, readNode),
    kinds: each(record.kinds, (k) => ({
      name: text(k.name),
      cpus: parseCpus(text(k.cpus)),
    })),
    shapeHash: text(record.shape_hash),
    contradictions: each(record.contradictions, readVerdict),
    warnings: texts(record.warnings),
    measured: record.measured ? readMeasured(fields(record.measured)) : null,
  };
}

function readCpu(told: CpuRecord) {
  const cpu = number(told.cpu);
  if (cpu === null) return null;
  return {
    cpu,
    core: number(told.core),
    llc: number(told.llc),
    package: number(told.package),
    node: number(told.numa_node),
    kind: number(told.kind),
    online: told.online !== false,
    allowed: told.allowed !== false,
  };
}

function readCache(told: CacheRecord) {
  const level = number(told.level);
  if (level === null) return null;
  return {
    level,
    type: text(told.type),
    bytes: number(told.size_bytes),
    cpus: parseCpus(text(told.cpus)),
  };
}

function readNode(told: NodeRecord) {
  const node = number(told.node);
  if (node === null) return null;
  return {
    node,
    cpus: parseCpus(text(told.cpus)),
    bytes: number(told.memory_bytes),
    allowed: told.allowed !== false,
  };
}

const readVerdict = (told: LevelVerdict | Contradiction) => ({
  level: text(told.level),
  verdict: ('verdict' in told && text(told.verdict)) || 'contradicted',
  claim: text(told.claim),
  measured: text(told.measured),
  confidence: number(told.confidence),
  advice: text(told.advice),
});

const readLevel = (told: MeasuredLevel) => ({
  kind: text(told.kind),
  groups: texts(told.groups)
    .map(parseCpus)
    .filter((group) => group.length > 0),
  insideNs: number(told.inside_ns),
  outsideNs: number(told.outside_ns),
  confidence: number(told.confidence),
});

function readPair(told: PairRecord) {
  const a = number(told.a);
  const b = number(told.b);
  if (a === null || b === null) return null;
  const contention =
    measure(told.contention_integer) ??
    measure(told.contention_float) ??
    measure(told.contention_spin);
  return { a, b, contention };
}

function readDriftPair(pair: DriftPairRecord) {
  const a = number(pair.a);
  const b = number(pair.b);
  if (a === null || b === null) return null;
  const states = items(pair.states).map((s) => ({
    kind: text(s.kind),
    latencyNs: number(s.latency_ns),
    share: number(s.share),
    visits: number(s.visits),
    dwellS: number(s.median_dwell_s),
  }));
  const samples = list(pair.samples).flatMap(
    (sample): [second: number, ns: number, state: number][] => {
      const [second, ns, , state] = list(sample).map(number);
      return typeof second === 'number' && typeof ns === 'number'
        ? [[second, ns, state ?? 0]]
        : [];
    },
  );
  return { a, b, states, samples };
}

const readDrift = (told: Partial<DriftRecord>) => ({
  sentence: text(told.sentence),
  pairs: each(told.pairs, readDriftPair),
});

function readLadder(value: LadderRecord | null | undefined) {
  const told = fields(value);
  const points = each(told.points, (point) => {
    const bytes = number(point.bytes);
    const ns = measure(point.latency_ns);
    return bytes !== null && bytes > 0 && ns ? { bytes, ns } : null;
  });
  if (points.length === 0) return null;
  const plateaus = each(told.plateaus, (p) => {
    const ns = number(p.latency_ns);
    return ns === null
      ? null
      : {
          level: number(p.level),
          ns,
          effective: number(p.effective_bytes),
          reported: number(p.reported_bytes),
        };
  });
  return {
    cpu: number(told.cpu),
    points,
    plateaus,
    hint: text(told.hint),
  };
}

function readModes(value: Modes | null | undefined): string {
  const told = fields(value);
  const low = number(told.low_ns);
  const high = number(told.high_ns);
  return low === null || high === null
    ? ''
    : `two costs, ${low.toFixed(1)} ns and ${high.toFixed(1)} ns`;
}

function readMeasured(told: MeasuredRecord) {
  const scheduling = fields(told.scheduling);
  const effort = fields(told.effort);
  return {
    cpus: numbers(told.cpus),
    latency: list(told.latency_ns).map((row) => list(row).map(number)),
    isMeasured: list(told.is_measured).map((row) =>
      list(row).map((cell) => cell === true),
    ),
    pairs: each(told.pairs, readPair),
    levels: items(told.levels).map(readLevel),
    cannotTell: text(told.cannot_tell),
    notes: texts(told.notes),
    verdicts: items(told.verdicts).map(readVerdict),
    pause: each(told.pause, (p) => {
      const cpu = number(p.cpu);
      const ns = measure(p.pause_ns);
      return cpu === null || !ns
        ? null
        : {
            cpu,
            ns,
            cycles: measure(p.pause_cycles),
            modes: readModes(p.modes),
          };
    }),
    ladder: readLadder(told.ladder),
    bandwidth: each(told.bandwidth, (b) => {
      const gbPerS = measure(b.gb_per_s);
      return (
        gbPerS && {
          stream: text(b.stream),
          cpus: text(b.cpus),
          node: number(b.node),
          gbPerS,
        }
      );
    }),
    loaded: each(told.loaded_latency, (l) => {
      const ns = measure(l.latency_ns);
      const background = number(l.background_gb_per_s);
      return ns && background !== null
        ? { cpu: number(l.cpu), loaders: text(l.loaders), background, ns }
        : null;
    }),
    clock: fields(told.clock),
    scheduling: {
      contextSwitch: measure(scheduling.context_switch_ns),
      futexWake: measure(scheduling.futex_wake_ns),
    },
    drift: told.drift ? readDrift(fields(told.drift)) : null,
    effort,
    leftOut: texts(effort.left_out),
    survey: fields(told.survey),
  };
}
