// The data of the timeline, independent of the canvas.

import { parseCpus } from '../../cpus';
import { visible } from '../../dom';
import type { Slices, Spans } from './decode';
import { decodeSharing, decodeSlices, decodeWaits } from './decode';
import { finite } from '../../numbers';
import type { CpuSpans, TraceRecord } from '../../records';
import type { Columns, Keys, Lanes, OrderedSlices, Rows } from './lanes';
import { lanesByCpu, lanesByThread, buildKeys, ColumnSums } from './lanes';
import { findWaitCauses, previousCpus, sortByTime } from './order';
import { type Steps, finish, lazily } from './steps';

/** All data of the timeline; times are ns since the start of the trace. */
export interface Scene {
  /** Length of the trace. */
  span: number;
  slices: Slices | null;
  waits: Spans | null;
  sharing: Spans | null;
  spans: { lengthNs: number; cpus: CpuSpans[] } | null;
  /** CPUs in the order of their cores. */
  cpus: number[];
  rowOf: ReadonlyMap<number, number>;
  coreOf: Map<number, number>;
  /** Last-level cache of each CPU, from a topology of the same machine: a trace does not have it. */
  llcOf: ReadonlyMap<number, number>;
  cpusOf: Map<number, number[]>;
  /** Indices of the threads in `slices.threads`, the busiest first. */
  threads: number[];
  threadName(place: number): string;
  /** Index of a thread by its number. */
  placeOf: Map<number, number>;
  lanes(rows: Rows): Lanes | null;
  /** The keys by which lanes are summed: threads in CPU rows, CPUs in thread rows; with `byCause`
   * also causes. */
  keys(rows: Rows, byCause: boolean): Keys | null;
  /** The sums of a row over the whole trace, in fine and in coarse columns; empty if it has few
   * slices. */
  bins(rows: Rows, row: number, byCause: boolean): readonly Columns[];
  /** Computes what a frame of these rows needs. */
  prepareRows(rows: Rows): Steps<void>;
  /** Computes what other rows and colours need. */
  prepareOthers(): Steps<void>;
  /** For each slice, the index of its wait's cause, plus 1; 0 without a recorded wait. */
  causes(): Uint8Array | null;
  /** Indices of a thread's waits, by its number, in the order of time. */
  waitsOf(thread: number): readonly number[];
  /** The first wait that can end after a time: all before it began too early even for the longest
   * wait. */
  firstWait(time: number): number;
  /** Shorter waits are not recorded, ns. */
  shortestWaitNs: number;
  /** Sentences on parts that could not be read. */
  damage: string[];
}

/** Reads a part of the timeline; a damaged one is null, with a sentence in `damage`. */
function* readPart<T>(
  damage: string[],
  read: Steps<T | null>,
): Steps<T | null> {
  try {
    return yield* read;
  } catch (error) {
    damage.push(
      `The timeline is drawn without a part: ${error instanceof Error ? error.message : 'it cannot be read'}.`,
    );
    return null;
  }
}

export const buildScene = (record: TraceRecord): Scene =>
  finish(buildSceneInSteps(record));

export function* buildSceneInSteps(record: TraceRecord): Steps<Scene> {
  const timeline = record.timeline ?? {};
  const damage: string[] = [];
  const slices = yield* readPart(damage, decodeSlices(timeline));
  const coreOf = new Map<number, number>();
  const cpusOf = new Map<number, number[]>();
  for (const { core, cpus } of record.cores ?? []) {
    if (!finite(core)) continue;
    cpusOf.set(core, parseCpus(cpus));
    for (const cpu of parseCpus(cpus)) coreOf.set(cpu, core);
  }
  const names = new Map<number, string>();
  for (const { thread, name } of [...(record.threads ?? [])].reverse())
    if (finite(thread)) names.set(thread, name ?? '');
  const placeOf = new Map<number, number>();
  slices?.threads.forEach((thread, place) => {
    if (!placeOf.has(thread)) placeOf.set(thread, place);
  });
  const waits = yield* readPart(damage, decodeWaits(timeline.waits));
  const sharing = yield* readPart(damage, decodeSharing(timeline.sharing));
  const cpus = sortCpus(record, slices, coreOf);
  const scene: Scene = {
    damage,
    llcOf: new Map(),
    shortestWaitNs: timeline.waits?.shortest_ns ?? 0,
    span: Math.max(1, (record.elapsed_s ?? 0) * 1e9),
    slices,
    waits,
    sharing,
    spans: timeline.spans?.length
      ? { lengthNs: (timeline.span_s ?? 0) * 1e9, cpus: timeline.spans }
      : null,
    cpus,
    rowOf: new Map(cpus.map((cpu, row) => [cpu, row])),
    coreOf,
    cpusOf,
    threads: sortThreads(record, slices, placeOf),
    threadName: (place) => {
      const thread = slices?.threads[place];
      return thread === undefined
        ? ''
        : `${visible(names.get(thread) ?? '')} ${thread}`.trim();
    },
    placeOf,
    ...deriveLazily(slices, waits, () => scene),
  };
  return scene;
}

/** Rows with at least this many slices have sums over the whole trace. */
const MANY_SLICES = 8_192;
const BIN_COUNTS = [16_384, 4_096] as const;

/** The parts of a scene that are computed on first use, and kept. */
function deriveLazily(
  slices: Slices | null,
  waits: Spans | null,
  scene: () => Scene,
): Pick<
  Scene,
  | 'lanes'
  | 'keys'
  | 'bins'
  | 'prepareRows'
  | 'prepareOthers'
  | 'causes'
  | 'waitsOf'
  | 'firstWait'
> {
  const order = lazily(function* (): Steps<OrderedSlices | null> {
    if (!slices) return null;
    const order = yield* sortByTime(slices);
    return { slices, order, previous: yield* previousCpus(slices, order) };
  });
  const lanes = {
    cpus: lazily(function* () {
      const ordered = yield* order.steps();
      return ordered && lanesByCpu(ordered, scene().cpus);
    }),
    threads: lazily(function* () {
      const ordered = yield* order.steps();
      return ordered && (yield* lanesByThread(ordered, scene().threads));
    }),
  };
  const causes = lazily(function* () {
    const ordered = yield* order.steps();
    return (
      ordered && (yield* findWaitCauses(ordered.slices, ordered.order, waits))
    );
  });
  const makeKeys = (rows: Rows, byCause: boolean): Keys | null => {
    const own = lanes[rows].now();
    return own && buildKeys(own, rows, byCause ? causes.now() : null);
  };
  const keys = {
    cpus: [
      memoise(() => makeKeys('cpus', false)),
      memoise(() => makeKeys('cpus', true)),
    ],
    threads: [
      memoise(() => makeKeys('threads', false)),
      memoise(() => makeKeys('threads', true)),
    ],
  } as const;
  const bins = new Map<string, Columns[]>();
  const longest = memoise(
    () => waits?.length.reduce((a, b) => Math.max(a, b), 0) ?? 0,
  );
  const byWho = memoise(() => {
    const places = new Map<number, number[]>();
    for (let at = 0; waits && at < waits.count; at += 1) {
      const own = places.get(waits.who[at]!);
      if (own) own.push(at);
      else places.set(waits.who[at]!, [at]);
    }
    return places;
  });
  const getBins: Scene['bins'] = (rows, row, byCause) => {
    const own = lanes[rows].now();
    const by = keys[rows][byCause ? 1 : 0]();
    if (!own || !by || own.first[row + 1]! - own.first[row]! < MANY_SLICES)
      return [];
    const name = `${rows} ${row} ${byCause}`;
    let kept = bins.get(name);
    if (!kept) {
      const { span } = scene();
      const [fine, coarse] = BIN_COUNTS.map(
        (many) => new ColumnSums(many, by.count),
      );
      kept = [fine!.sum(own, row, 0, span, by.keys)];
      kept.push(coarse!.sumBins(kept[0]!, 0, span, span));
      bins.set(name, kept);
    }
    return kept;
  };
  return {
    lanes: (rows) => lanes[rows].now(),
    keys: (rows, byCause) => keys[rows][byCause ? 1 : 0](),
    bins: getBins,
    *prepareRows(rows) {
      const own = yield* lanes[rows].steps();
      for (let row = 0; own && row < own.keys.length; row += 1) {
        getBins(rows, row, false);
        yield;
      }
    },
    causes: causes.now,
    *prepareOthers() {
      yield* lanes.threads.steps();
      yield* causes.steps();
      keys.cpus[1]();
    },
    firstWait: (time) => {
      const from = time - longest();
      let low = 0;
      let high = waits?.count ?? 0;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (waits!.start[middle]! >= from) high = middle;
        else low = middle + 1;
      }
      return low;
    },
    waitsOf: (thread) => byWho().get(thread) ?? [],
  };
}

/** Returns a function that computes a value on its first call, and keeps it. */
function memoise<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}

function sortCpus(
  record: TraceRecord,
  slices: Slices | null,
  coreOf: Map<number, number>,
): number[] {
  const shown = [...(record.cpus ?? []), ...(record.timeline?.spans ?? [])];
  const cpus = new Set(shown.map(({ cpu }) => cpu).filter(finite));
  for (let at = 0; slices && at < slices.count; at += 1)
    if (at === 0 || slices.cpu[at] !== slices.cpu[at - 1])
      cpus.add(slices.cpu[at]!);
  const core = (cpu: number): number =>
    coreOf.get(cpu) ?? Number.MAX_SAFE_INTEGER;
  return [...cpus].sort((a, b) => core(a) - core(b) || a - b);
}

function sortThreads(
  record: TraceRecord,
  slices: Slices | null,
  placeOf: Map<number, number>,
): number[] {
  const places = new Set<number>();
  for (const thread of record.threads ?? []) {
    const place = placeOf.get(thread.thread ?? -1);
    if (place !== undefined) places.add(place);
  }
  slices?.threads.forEach((_, place) => places.add(place));
  return [...places];
}

/** Name of a row. */
export function rowName(scene: Scene, rows: Rows, row: number): string {
  if (rows === 'threads') return scene.threadName(scene.threads[row]!);
  const cpu = scene.cpus[row]!;
  const core = scene.coreOf.get(cpu);
  return core === undefined ? `CPU ${cpu}` : `CPU ${cpu} · core ${core}`;
}

/** Did a slice's thread come from another CPU of the core ("smt") or of another core? Null: from
 * neither. */
export function classifyMove(
  scene: Scene,
  lanes: Lanes,
  row: number,
  at: number,
): 'smt' | 'core' | null {
  if (at <= lanes.first[row]!) return null;
  const [before, now] = [lanes.colour[at - 1]!, lanes.colour[at]!];
  if (before === now) return null;
  const core = scene.coreOf.get(now);
  return core !== undefined && core === scene.coreOf.get(before)
    ? 'smt'
    : 'core';
}

/** The number of recorded waits queued on a CPU at a time. */
export function countQueued(scene: Scene, cpu: number, time: number): number {
  const { waits } = scene;
  let queued = 0;
  for (let at = scene.firstWait(time); waits && at < waits.count; at += 1) {
    if (waits.start[at]! > time) break;
    if (waits.place[at] === cpu && time < waits.start[at]! + waits.length[at]!)
      queued += 1;
  }
  return queued;
}

/** Indices of the threads whose names contain all the words. */
export function findThreads(scene: Scene, find: string): number[] {
  const words = find.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return scene.threads.filter((place) => {
    const name = scene.threadName(place).toLowerCase();
    return words.every((word) => name.includes(word));
  });
}

/** Round times for ticks of an axis, about `many` of them. */
export function roundTicks(from: number, to: number, many: number): number[] {
  const rough = (to - from) / Math.max(1, many);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step =
    [1, 2, 5, 10]
      .map((factor) => factor * power)
      .find((size) => size >= rough) ?? rough;
  const all: number[] = [];
  for (
    let at = Math.ceil(from / step);
    at * step <= to && all.length < 100;
    at += 1
  )
    all.push(at * step);
  return all;
}

/** A part of the trace. */
export interface Window {
  from: number;
  to: number;
}

/** Zooms about a time; never beyond the trace, nor below 1 µs. */
export function zoomWindow(
  window: Window,
  factor: number,
  about: number,
  span: number,
): Window {
  const length = Math.min(
    span,
    Math.max(Math.min(1_000, span), (window.to - window.from) * factor),
  );
  const share = (about - window.from) / (window.to - window.from);
  return clampWindow(
    { from: about - share * length, to: about - share * length + length },
    span,
  );
}

/** Moves the window by a share of its length. */
export function panWindow(window: Window, share: number, span: number): Window {
  const by = (window.to - window.from) * share;
  return clampWindow({ from: window.from + by, to: window.to + by }, span);
}

/** Moves a window into the trace; its length stays, at most that of the trace. */
export function clampWindow(window: Window, span: number): Window {
  const length = Math.min(span, window.to - window.from);
  const from = Math.min(Math.max(0, window.from), span - length);
  return { from, to: from + length };
}
