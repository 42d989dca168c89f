// What the timeline draws and what it says of a place in it: no canvas here.

import { parseCpus } from '../../cpus';
import { visible } from '../../dom';
import { percent, seconds } from '../../format';
import type { Slices, Spans } from './decode';
import { sharingOf, slicesOf, waitsOf } from './decode';
import { finite } from '../../numbers';
import type { CpuSpans, TraceRecord } from '../../records';
import type { Lanes } from './lanes';
import { byCpu, byThread, firstAfter, sliceAt } from './lanes';

export type Rows = 'cpus' | 'threads';

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
  coreOf: Map<number, number>;
  cpusOf: Map<number, number[]>;
  /** Places of the threads, the busiest first. */
  threads: number[];
  threadName(place: number): string;
  /** Place of a thread by its number. */
  placeOf: Map<number, number>;
  lanes(rows: Rows): Lanes | null;
  /** What could not be read, as sentences. */
  damage: string[];
}

/** A part of the timeline; one that is damaged is left out, and said to be. */
function part<T>(damage: string[], read: () => T | null): T | null {
  try {
    return read();
  } catch (error) {
    damage.push(
      `The timeline is drawn without a part: ${error instanceof Error ? error.message : 'it cannot be read'}.`,
    );
    return null;
  }
}

export function sceneOf(record: TraceRecord): Scene {
  const timeline = record.timeline ?? {};
  const damage: string[] = [];
  const slices = part(damage, () => slicesOf(timeline));
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
  const cache = new Map<Rows, Lanes>();
  const scene: Scene = {
    damage,
    span: Math.max(1, (record.elapsed_s ?? 0) * 1e9),
    slices,
    waits: part(damage, () => waitsOf(timeline.waits)),
    sharing: part(damage, () => sharingOf(timeline.sharing)),
    spans: timeline.spans?.length
      ? { lengthNs: (timeline.span_s ?? 0) * 1e9, cpus: timeline.spans }
      : null,
    cpus: cpusInOrder(record, slices, coreOf),
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
    lanes: (rows) => {
      if (!slices) return null;
      let lanes = cache.get(rows);
      if (!lanes) {
        lanes =
          rows === 'cpus'
            ? byCpu(slices, scene.cpus)
            : byThread(slices, scene.threads);
        cache.set(rows, lanes);
      }
      return lanes;
    },
  };
  return scene;
}

function cpusInOrder(
  record: TraceRecord,
  slices: Slices | null,
  coreOf: Map<number, number>,
): number[] {
  const told = [...(record.cpus ?? []), ...(record.timeline?.spans ?? [])];
  const cpus = new Set(told.map(({ cpu }) => cpu).filter(finite));
  slices?.cpu.forEach((cpu) => cpus.add(cpu));
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

/** What a place of the timeline shows, as one sentence. */
export function describe(
  scene: Scene,
  rows: Rows,
  row: number,
  time: number,
): string {
  const where = `${rowName(scene, rows, row)} at ${moment(time)}`;
  const lanes = scene.lanes(rows);
  if (!lanes) return `${where}: ${spanWords(scene, row, time)}.`;
  const at = sliceAt(lanes, row, time);
  if (at === null)
    return `${where}: ${emptyWords(scene, rows, lanes, row, time)}.`;
  const slices = scene.slices!;
  const from = lanes.origin[at]!;
  const end = slices.ends[slices.end[from]!] ?? 'untold';
  const who =
    rows === 'cpus'
      ? scene.threadName(slices.thread[from]!)
      : `on CPU ${slices.cpu[from]}`;
  return `${where}: ${who} from ${moment(lanes.start[at]!)} for ${seconds(lanes.length[at]! * 1e-9)}, then ${END_WORDS[end] ?? end}${movedWords(scene, rows, lanes, row, at)}.`;
}

const END_WORDS: Readonly<Record<string, string>> = {
  blocked: 'waiting for something',
  preempted: 'pushed aside',
  ended: 'ended',
  untold: 'still there, or not told',
};

export const CAUSE_WORDS: Readonly<Record<string, string>> = {
  scheduler: 'another allowed CPU idled',
  mask: 'only CPUs idled that its mask forbids',
  other_processes: 'another program ran there',
  own_threads: 'a thread of the same program ran there',
  starting: 'the idle CPU had yet to start',
  throttled: 'a quota on CPU time was used up',
  untold: 'why is not told',
};

/** A time with enough digits to find it again. */
export function moment(time: number): string {
  return seconds(time * 1e-9, 6);
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

function movedWords(
  scene: Scene,
  rows: Rows,
  lanes: Lanes,
  row: number,
  at: number,
): string {
  const move = rows === 'threads' ? moveOf(scene, lanes, row, at) : null;
  if (!move) return '';
  return `; it came from CPU ${lanes.colour[at - 1]}, ${move === 'smt' ? 'the same core' : 'another core'}`;
}

function emptyWords(
  scene: Scene,
  rows: Rows,
  lanes: Lanes,
  row: number,
  time: number,
): string {
  if (rows === 'cpus') return 'no traced thread';
  const wait = waitAt(scene, scene.slices!.threads[scene.threads[row]!]!, time);
  if (wait !== null) {
    const waits = scene.waits!;
    const cause = waits.causes[waits.cause[wait]!] ?? 'untold';
    return `queued on CPU ${waits.place[wait]} for ${seconds(waits.length[wait]! * 1e-9)}, ${CAUSE_WORDS[cause] ?? visible(cause)}`;
  }
  const next = firstAfter(lanes, row, time);
  if (next >= lanes.first[row + 1]!) return 'not on a CPU any more';
  return `not on a CPU; next from ${moment(lanes.start[next]!)}`;
}

function waitAt(scene: Scene, thread: number, time: number): number | null {
  const waits = scene.waits;
  if (!waits) return null;
  for (let at = 0; at < waits.count && waits.start[at]! <= time; at += 1) {
    if (waits.who[at] === thread && time < waits.start[at]! + waits.length[at]!)
      return at;
  }
  return null;
}

function spanWords(scene: Scene, row: number, time: number): string {
  const spans = scene.spans;
  const cpu = spans?.cpus.find((told) => told.cpu === scene.cpus[row]);
  if (!spans || !cpu) return 'nothing is told';
  const at = Math.floor(time / spans.lengthNs);
  const foreign = cpu.foreign?.[at];
  const others =
    foreign === undefined ? '' : `, with others ${percent(foreign)}`;
  return `busy with traced threads for ${percent(cpu.own?.[at] ?? 0)} of ${seconds(spans.lengthNs * 1e-9)}${others}`;
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
export function zoomed(
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
export function panned(window: Window, share: number, span: number): Window {
  const by = (window.to - window.from) * share;
  return within({ from: window.from + by, to: window.to + by }, span);
}

/** Moved into the trace, its length kept. */
export function within(window: Window, span: number): Window {
  const length = Math.min(span, window.to - window.from);
  const from = Math.min(Math.max(0, window.from), span - length);
  return { from, to: from + length };
}
