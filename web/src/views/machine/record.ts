// Reads the fields of "pinwise.topology/1" that are drawn: what a record lacks, or has in another
// form, is null or empty here.

import { parseCpus } from '../../cpus';
import {
  mapItems,
  fields,
  items,
  list,
  number,
  numbers,
  text,
  texts,
} from '../../fields';
import { fixed } from '../../format';
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
import { filterMap } from '../../lists';

export type Machine = ReturnType<typeof readMachine>;
export type Measured = ReturnType<typeof readMeasured>;
/** A median of batches with its interval. */
export type Measure = NonNullable<ReturnType<typeof readMeasure>>;
export type Cpu = NonNullable<ReturnType<typeof readCpu>>;
export type Cache = NonNullable<ReturnType<typeof readCache>>;
export type Level = ReturnType<typeof readLevel>;
export type Verdict = Contradiction & { level: string };
export type DriftPair = NonNullable<ReturnType<typeof readDriftPair>>;

function readMeasure(value: Median | null | undefined) {
  const raw = fields(value);
  const middle = number(raw.value);
  return middle === null
    ? null
    : { value: middle, low: number(raw.low), high: number(raw.high) };
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
    restrictions: items(record.restrictions),
    quota:
      quotaCpus === null
        ? null
        : { cpus: quotaCpus, source: text(quota.source) },
    cpus: mapItems(record.cpus, readCpu),
    caches: mapItems(record.caches, readCache),
    nodes: mapItems(record.numa_nodes, readNode),
    kinds: mapItems(record.kinds, (k) => ({
      name: text(k.name),
      cpus: parseCpus(text(k.cpus)),
    })),
    devices: items(record.devices),
    shapeHash: text(record.shape_hash),
    contradictions: mapItems(record.contradictions, readVerdict),
    warnings: texts(record.warnings),
    started: text(record.started),
    measured: record.measured ? readMeasured(fields(record.measured)) : null,
  };
}

function readCpu(raw: CpuRecord) {
  const cpu = number(raw.cpu);
  if (cpu === null) return null;
  return {
    cpu,
    core: number(raw.core),
    llc: number(raw.llc),
    package: number(raw.package),
    node: number(raw.numa_node),
    kind: number(raw.kind),
    online: raw.online !== false,
    allowed: raw.allowed !== false,
  };
}

function readCache(raw: CacheRecord) {
  const level = number(raw.level);
  if (level === null) return null;
  return {
    level,
    type: text(raw.type),
    bytes: number(raw.size_bytes),
    cpus: parseCpus(text(raw.cpus)),
  };
}

function readNode(raw: NodeRecord) {
  const node = number(raw.node);
  if (node === null) return null;
  return {
    node,
    cpus: parseCpus(text(raw.cpus)),
    bytes: number(raw.memory_bytes),
    allowed: raw.allowed !== false,
    memory: text(raw.memory_kind),
    near: text(raw.near_cpus),
    bandwidth: number(raw.bandwidth_mb_per_s),
    latency: number(raw.latency_ns),
  };
}

const readVerdict = <T extends LevelVerdict | Contradiction>(raw: T) => ({
  ...raw,
  level: text(raw.level),
});

const readLevel = (raw: MeasuredLevel) => ({
  kind: text(raw.kind),
  groups: texts(raw.groups)
    .map(parseCpus)
    .filter((group) => group.length > 0),
  insideNs: number(raw.inside_ns),
  outsideNs: number(raw.outside_ns),
  confidence: number(raw.confidence),
});

function readPair(raw: PairRecord) {
  const a = number(raw.a);
  const b = number(raw.b);
  if (a === null || b === null) return null;
  const contention =
    readMeasure(raw.contention_integer) ??
    readMeasure(raw.contention_float) ??
    readMeasure(raw.contention_spin);
  return { a, b, contention };
}

function readDriftPair(pair: DriftPairRecord) {
  const a = number(pair.a);
  const b = number(pair.b);
  if (a === null || b === null) return null;
  const states = items(pair.states);
  const samples = filterMap(
    list(pair.samples),
    (sample): { second: number; ns: number; state: number } | null => {
      const [second, ns, , state] = list(sample).map(number);
      return typeof second === 'number' && typeof ns === 'number'
        ? { second, ns, state: state ?? 0 }
        : null;
    },
  );
  return { a, b, states, samples };
}

const readDrift = (raw: Partial<DriftRecord>) => ({
  sentence: text(raw.sentence),
  pairs: mapItems(raw.pairs, readDriftPair),
});

function readLadder(value: LadderRecord | null | undefined) {
  const raw = fields(value);
  const points = mapItems(raw.points, (point) => {
    const bytes = number(point.bytes);
    const ns = readMeasure(point.latency_ns);
    return bytes !== null && bytes > 0 && ns ? { bytes, ns } : null;
  });
  if (points.length === 0) return null;
  const plateaus = mapItems(raw.plateaus, (p) => {
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
    cpu: number(raw.cpu),
    points,
    plateaus,
    hint: text(raw.hint),
  };
}

function readModes(value: Modes | null | undefined): string {
  const raw = fields(value);
  const low = number(raw.low_ns);
  const high = number(raw.high_ns);
  return low === null || high === null
    ? ''
    : `two costs, ${fixed(low, 1)} ns and ${fixed(high, 1)} ns`;
}

function readMeasured(raw: MeasuredRecord) {
  const scheduling = fields(raw.scheduling);
  const effort = fields(raw.effort);
  return {
    cpus: numbers(raw.cpus),
    latency: list(raw.latency_ns).map((row) => list(row).map(number)),
    isMeasured: list(raw.is_measured).map((row) =>
      list(row).map((cell) => cell === true),
    ),
    pairs: mapItems(raw.pairs, readPair),
    levels: items(raw.levels).map(readLevel),
    answer: text(raw.answer),
    notes: texts(raw.notes),
    verdicts: items(raw.verdicts).map(readVerdict),
    pause: mapItems(raw.pause, (p) => {
      const cpu = number(p.cpu);
      const ns = readMeasure(p.pause_ns);
      return cpu === null || !ns
        ? null
        : {
            cpu,
            ns,
            cycles: readMeasure(p.pause_cycles),
            modes: readModes(p.modes),
          };
    }),
    ladder: readLadder(raw.ladder),
    bandwidth: mapItems(raw.bandwidth, (b) => {
      const gbPerS = readMeasure(b.gb_per_s);
      return (
        gbPerS && {
          stream: text(b.stream),
          cpus: text(b.cpus),
          node: number(b.node),
          gbPerS,
        }
      );
    }),
    loaded: mapItems(raw.loaded_latency, (l) => {
      const ns = readMeasure(l.latency_ns);
      const background = number(l.background_gb_per_s);
      return ns && background !== null
        ? { cpu: number(l.cpu), loaders: text(l.loaders), background, ns }
        : null;
    }),
    clock: fields(raw.clock),
    scheduling: {
      contextSwitch: readMeasure(scheduling.context_switch_ns),
      futexWake: readMeasure(scheduling.futex_wake_ns),
    },
    drift: raw.drift ? readDrift(fields(raw.drift)) : null,
    effort,
    leftOut: texts(effort.left_out),
    survey: fields(raw.survey),
  };
}
