// What the timeline draws and its text for a place in it: no canvas here.

import { parseCpus } from '../../cpus';
import { visible } from '../../dom';
import type { Slices, Spans } from './decode';
import { sharingOf, slicesOf, waitsOf } from './decode';
import { finite } from '../../numbers';
import type { CpuSpans, TraceRecord } from '../../records';
import type { Columns, Keys, Lanes, Ordered, Rows } from './lanes';
import { byCpu, byThread, keysFor, Summer } from './lanes';
import { causesBefore, previousCpus, timeOrder } from './order';
import { type Steps, finish, lazily } from './steps';

/** Everything that the timeline needs, ns since the trace's first moment. */
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
  /** Last-level cache of each CPU; a trace does not say, a topology of the same machine does. */
  llcOf: ReadonlyMap<number, number>;
  cpusOf: Map<number, number[]>;
  /** Places of the threads, the busiest first. */
  threads: number[];
  threadName(place: number): string;
  /** Place of a thread by its number. */
  placeOf: Map<number, number>;
  lanes(rows: Rows): Lanes | null;
  /** What lanes are summed by: threads in CPU rows, CPUs in thread rows; also causes if colours
   * show them. */
  keys(rows: Rows, byCause: boolean): Keys | null;
  /** A row in columns over the whole trace, fine ones and coarser ones; none if it has few
   * slices. */
  bins(rows: Rows, row: number, byCause: boolean): readonly Columns[];
  /** Works out what a frame of these rows needs. */
  ahead(rows: Rows): Steps<void>;
  /** Works out what other rows and colours need. */
  aheadOfChoice(): Steps<void>;
  /** For each slice the place of its wait's cause + 1; 0 if no wait is kept. */
  causes(): Uint8Array | null;
  /** Places of a thread's waits, by its number, in the order of time. */
  waitsOf(thread: number): readonly number[];
  /** The first wait that can reach beyond a time: none is longer than the longest. */
  firstWait(time: number): number;
  /** Shorter waits are not kept, ns. */
  shortestWaitNs: number;
  /** What could not be read, as sentences. */
  damage: string[];
}

/** A part of the timeline; one that is damaged is left out, and said to be. */
function* part<T>(damage: string[], read: Steps<T | null>): Steps<T | null> {
  try {
    return yield* read;
  } catch (error) {
    damage.push(
      `The timeline is drawn without a part: ${error instanceof Error ? error.message : 'it cannot be read'}.`,
    );
    return null;
  }
}

export const sceneOf = (record: TraceRecord): Scene =>
  finish(sceneInSteps(record));

export function* sceneInSteps(record: TraceRecord): Steps<Scene> {
  const timeline = record.timeline ?? {};
  const damage: string[] = [];
  const slices = yield* part(damage, slicesOf(timeline));
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
  const waits = yield* part(damage, waitsOf(timeline.waits));
  const sharing = yield* part(damage, sharingOf(timeline.sharing));
  const cpus = cpusInOrder(record, slices, coreOf);
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
    threads: threadsInOrder(record, slices, placeOf),
    threadName: (place) => {
      const thread = slices?.threads[place];
      return thread === undefined
        ? ''
        : `${visible(names.get(thread) ?? '')} ${thread}`.trim();
    },
    placeOf,
    ...derive(slices, waits, () => scene),
  };
  return scene;
}

/** Slices in a row from which on columns of the whole trace are kept. */
const MANY_SLICES = 8_192;
const BINS = [16_384, 4_096] as const;

/** What is worked out when it is first asked for, and kept. */
function derive(
  slices: Slices | null,
  waits: Spans | null,
  scene: () => Scene,
): Pick<
  Scene,
  | 'lanes'
  | 'keys'
  | 'bins'
  | 'ahead'
  | 'aheadOfChoice'
  | 'causes'
  | 'waitsOf'
  | 'firstWait'
> {
  const order = lazily(function* (): Steps<Ordered | null> {
    if (!slices) return null;
    const order = yield* timeOrder(slices);
    return { slices, order, previous: yield* previousCpus(slices, order) };
  });
  const lanes = {
    cpus: lazily(function* () {
      const ordered = yield* order.steps();
      return ordered && byCpu(ordered, scene().cpus);
    }),
    threads: lazily(function* () {
      const ordered = yield* order.steps();
      return ordered && (yield* byThread(ordered, scene().threads));
    }),
  };
  const causes = lazily(function* () {
    const ordered = yield* order.steps();
    return (
      ordered && (yield* causesBefore(ordered.slices, ordered.order, waits))
    );
  });
  const keysOf = (rows: Rows, byCause: boolean): Keys | null => {
    const own = lanes[rows].now();
    return own && keysFor(own, rows, byCause ? causes.now() : null);
  };
  const keys = {
    cpus: [once(() => keysOf('cpus', false)), once(() => keysOf('cpus', true))],
    threads: [
      once(() => keysOf('threads', false)),
      once(() => keysOf('threads', true)),
    ],
  } as const;
  const bins = new Map<string, Columns[]>();
  const longest = once(
    () => waits?.length.reduce((a, b) => Math.max(a, b), 0) ?? 0,
  );
  const byWho = once(() => {
    const places = new Map<number, number[]>();
    for (let at = 0; waits && at < waits.count; at += 1) {
      const own = places.get(waits.who[at]!);
      if (own) own.push(at);
      else places.set(waits.who[at]!, [at]);
    }
    return places;
  });
  const binsOf: Scene['bins'] = (rows, row, byCause) => {
    const own = lanes[rows].now();
    const by = keys[rows][byCause ? 1 : 0]();
    if (!own || !by || own.first[row + 1]! - own.first[row]! < MANY_SLICES)
      return [];
    const name = `${rows} ${row} ${byCause}`;
    let kept = bins.get(name);
    if (!kept) {
      const { span } = scene();
      const [fine, coarse] = BINS.map((many) => new Summer(many, by.count));
      kept = [fine!.sum(own, row, 0, span, by.keys)];
      kept.push(coarse!.sumBins(kept[0]!, 0, span, span));
      bins.set(name, kept);
    }
    return kept;
  };
  return {
    lanes: (rows) => lanes[rows].now(),
    keys: (rows, byCause) => keys[rows][byCause ? 1 : 0](),
    bins: binsOf,
    *ahead(rows) {
      const own = yield* lanes[rows].steps();
      for (let row = 0; own && row < own.keys.length; row += 1) {
        binsOf(rows, row, false);
        yield;
      }
    },
    causes: causes.now,
    *aheadOfChoice() {
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

/** A value that is worked out once. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}

function cpusInOrder(
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

function threadsInOrder(
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

/** How a thread came to the CPU of a slice in its row: "moved", or nothing. */
export function moveOf(
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

/** Waits that are kept and queued on a CPU at a time. */
export function queuedOn(scene: Scene, cpu: number, time: number): number {
  const { waits } = scene;
  let queued = 0;
  for (let at = scene.firstWait(time); waits && at < waits.count; at += 1) {
    if (waits.start[at]! > time) break;
    if (waits.place[at] === cpu && time < waits.start[at]! + waits.length[at]!)
      queued += 1;
  }
  return queued;
}

/** Places of the threads whose names hold all the words. */
export function threadsNamed(scene: Scene, find: string): number[] {
  const words = find.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return scene.threads.filter((place) => {
    const name = scene.threadName(place).toLowerCase();
    return words.every((word) => name.includes(word));
  });
}

/** Round steps of a time axis: about `many` between two times. */
export function ticks(from: number, to: number, many: number): number[] {
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
  return within(
    { from: about - share * length, to: about - share * length + length },
    span,
  );
}

/** Moves by a share of what is seen. */
export function panWindow(window: Window, share: number, span: number): Window {
  const by = (window.to - window.from) * share;
  return within({ from: window.from + by, to: window.to + by }, span);
}

/** Moved into the trace, its length kept. */
export function within(window: Window, span: number): Window {
  const length = Math.min(span, window.to - window.from);
  const from = Math.min(Math.max(0, window.from), span - length);
  return { from, to: from + length };
}
