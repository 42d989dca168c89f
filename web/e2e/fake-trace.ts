// A synthetic trace record of any size, from a seed, packed as pinwise packs its own.

import type { PackedSlicesRecord } from '../src/records';

const SMALLEST_WAIT_NS = 10_000;
const ENDS = ['blocked', 'preempted', 'ended', 'unreported'];

/** A seeded generator of numbers from 0 to 1 (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A growing buffer of packed numbers. */
export class Bytes {
  private readonly bytes: number[] = [];

  varint(value: number): void {
    let left = value;
    while (left >= 128) {
      this.bytes.push((left % 128) + 128);
      left = Math.floor(left / 128);
    }
    this.bytes.push(left);
  }

  base64(): string {
    return Buffer.from(this.bytes).toString('base64');
  }
}

/** Thread, CPU, start and length in ns, and how the slice ended, by default `blocked`. */
export type FakeSlice = [number, number, number, number, string?];

/** Packs slices; those of a CPU must be in the order of time. */
export function packSlices(slices: readonly FakeSlice[]): PackedSlicesRecord {
  const threads = [...new Set(slices.map(([thread]) => thread))];
  const cpus = [...new Set(slices.map(([, cpu]) => cpu))].map((cpu) => {
    const own = slices.filter((slice) => slice[1] === cpu);
    const bytes = new Bytes();
    let time = 0;
    for (const [thread, , start, length, end = 'blocked'] of own) {
      bytes.varint(start - time);
      bytes.varint(length);
      bytes.varint(threads.indexOf(thread) * 4 + ENDS.indexOf(end));
      time = start + length;
    }
    return { cpu, count: own.length, bytes: bytes.base64() };
  });
  return { form: 'varint/1', count: slices.length, threads, ends: ENDS, cpus };
}

export interface TraceSize {
  slices: number;
  cpus: number;
  threads: number;
  seed?: number;
}

interface Wait {
  start: number;
  length: number;
  cpu: number;
  thread: number;
}

/** A record of `pinwise.trace/1`. Cores have two CPUs. */
export function fakeTrace({
  slices,
  cpus,
  threads,
  seed = 1,
}: TraceSize): Record<string, unknown> {
  const chance = randomNumbers(seed);
  const tids = Array.from({ length: threads }, (_, at) => 1000 + at);
  const streams = Array.from({ length: cpus }, () => ({
    bytes: new Bytes(),
    count: 0,
    end: 0,
  }));
  const freeAt = new Float64Array(threads);
  const cpuTime = new Float64Array(threads);
  const waits: Wait[] = [];
  for (let made = 0; made < slices; made += 1) {
    let cpu = 0;
    for (let at = 1; at < cpus; at += 1)
      if (streams[at]!.end < streams[cpu]!.end) cpu = at;
    const stream = streams[cpu]!;
    let start = stream.end + Math.floor(chance() ** 4 * 40_000);
    let thread = Math.floor(chance() * threads);
    for (let tries = 0; freeAt[thread]! > start && tries < threads; tries += 1)
      thread = (thread + 1) % threads;
    start = Math.max(start, freeAt[thread]!);
    const length = 500 + Math.floor(chance() ** 3 * 80_000);
    const waited = Math.floor(
      chance() * Math.min(60_000, start - freeAt[thread]!),
    );
    if (waited >= SMALLEST_WAIT_NS && waits.length < 100_000)
      waits.push({ start: start - waited, length: waited, cpu, thread });
    stream.bytes.varint(start - stream.end);
    stream.bytes.varint(length);
    stream.bytes.varint(thread * 4 + (chance() < 0.3 ? 1 : 0));
    stream.count += 1;
    stream.end = start + length;
    freeAt[thread] = start + length;
    cpuTime[thread]! += length;
  }
  const elapsed = Math.max(...streams.map((stream) => stream.end));
  return {
    schema: 'pinwise.trace/1',
    id: 'made',
    started: '2026-01-01T00:00:00Z',
    host: { hostname: 'made', simulated: false, cpu_model: 'dice' },
    source: { kind: 'machine' },
    tier: 'bpf',
    elapsed_s: elapsed * 1e-9,
    totals: {
      threads,
      processes: 1,
      switches: slices,
      preemptions: null,
      wakeups: null,
      migrations: null,
      cpu_s: cpuTime.reduce((a, b) => a + b) * 1e-9,
      events: 2 * slices,
    },
    waits: {},
    threads: tids.map((thread, at) => ({
      thread,
      process: 1000,
      name: `worker-${at}`,
      cpu_s: cpuTime[at]! * 1e-9,
      cpus: [],
    })),
    cpus: streams.map((_, cpu) => ({ cpu, own_s: 0 })),
    cores: Array.from({ length: cpus / 2 }, (_, core) => ({
      core,
      cpus: `${2 * core}-${2 * core + 1}`,
      own_s: 1,
    })),
    timeline: {
      packed: {
        form: 'varint/1',
        count: slices,
        threads: tids,
        ends: ENDS,
        cpus: streams.map((stream, cpu) => ({
          cpu,
          count: stream.count,
          bytes: stream.bytes.base64(),
        })),
      },
      waits: packWaits(waits, tids),
      sharing: packSharing(elapsed, cpus / 2, chance),
      span_s: 0.1,
      spans: [],
    },
    findings: [],
    notes: [],
  };
}

function packWaits(waits: Wait[], threads: number[]): unknown {
  const bytes = new Bytes();
  let before = 0;
  for (const wait of [...waits].sort((a, b) => a.start - b.start)) {
    for (const value of [
      wait.start - before,
      wait.length,
      wait.cpu,
      wait.thread * 8 + 3,
    ])
      bytes.varint(value);
    before = wait.start;
  }
  const causes = [
    'scheduler',
    'mask',
    'other_processes',
    'own_threads',
    'starting',
    'unreported',
  ];
  return {
    form: 'varint/1',
    count: waits.length,
    shortest_ns: SMALLEST_WAIT_NS,
    left_out: { count: 0, ns: 0 },
    threads,
    causes,
    bytes: bytes.base64(),
  };
}

function packSharing(
  elapsed: number,
  cores: number,
  chance: () => number,
): unknown {
  const bytes = new Bytes();
  const count = 2_000;
  for (let at = 0; at < count; at += 1) {
    const gap = Math.floor(((elapsed / count) * (0.5 + chance())) / 2);
    for (const value of [
      gap,
      Math.floor(gap * chance()),
      Math.floor(chance() * cores),
      2 * 4,
    ])
      bytes.varint(value);
  }
  return {
    form: 'varint/1',
    count,
    left_out: { count: 0, ns: 0 },
    causes: ['scheduler', 'mask', 'other_processes'],
    bytes: bytes.base64(),
  };
}
