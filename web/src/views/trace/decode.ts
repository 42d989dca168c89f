// Decodes the packed numbers of a timeline into typed arrays. All times are ns
// since the start of the trace.

import { fromBase64 } from '../../base64';
import { finite } from '../../numbers';
import type {
  PackedSharingRecord,
  PackedWaitsRecord,
  TimelineRecord,
} from '../../records';
import type { Steps } from './steps';

/** Slices of all CPUs, CPU by CPU, each CPU's in the order of time. */
export interface Slices {
  count: number;
  start: Float64Array;
  length: Float64Array;
  cpu: Uint32Array;
  /** Place in `threads`. */
  thread: Uint32Array;
  /** Place in `ends`. */
  end: Uint8Array;
  threads: number[];
  ends: string[];
}

/** Waits or needless sharing, in the order of their beginning. */
export interface Spans {
  count: number;
  start: Float64Array;
  length: Float64Array;
  /** CPU or core. */
  place: Uint32Array;
  /** Number of the thread, or how many threads. */
  who: Uint32Array;
  /** Place in `causes`. */
  cause: Uint8Array;
  causes: string[];
}

const PACKED_FORM = 'varint/1';
/** Slices or spans decoded in one step of work. */
const ITEMS_PER_STEP = 16_384;

function damageError(what: string): Error {
  return new Error(`its ${what} are damaged or of a newer layout`);
}

/** Reads numbers one after the other; NaN beyond the end. */
class Varints {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  next(): number {
    const { bytes } = this;
    let value = 0;
    let factor = 1;
    while (this.at < bytes.length) {
      const byte = bytes[this.at]!;
      this.at += 1;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
      factor *= 128;
    }
    return NaN;
  }

  get isDone(): boolean {
    return this.at === this.bytes.length;
  }
}

function allocateSlices(
  count: number,
  threads: number[],
  ends: string[],
): Slices {
  return {
    count,
    start: new Float64Array(count),
    length: new Float64Array(count),
    cpu: new Uint32Array(count),
    thread: new Uint32Array(count),
    end: new Uint8Array(count),
    threads,
    ends,
  };
}

/** The slices of a timeline; null if it has spans only. */
export function* decodeSlices({
  packed,
}: TimelineRecord): Steps<Slices | null> {
  if (!packed) return null;
  const { cpus, threads, ends } = packed;
  if (packed.form !== PACKED_FORM || !cpus || !threads || !ends)
    throw damageError('slices');
  const shown = cpus.reduce((sum, cpu) => sum + (cpu.count ?? 0), 0);
  // Each slice has at least three bytes: a wrong count is refused before memory is allocated.
  const bytes = cpus.reduce((sum, cpu) => sum + (cpu.bytes?.length ?? 0), 0);
  if (shown !== packed.count || shown > bytes) throw damageError('slices');
  const slices = allocateSlices(shown, threads, ends);
  let at = 0;
  for (const { cpu = null, bytes, count } of [...cpus].sort(
    (a, b) => (a.cpu ?? 0) - (b.cpu ?? 0),
  )) {
    if (cpu === null) throw damageError('slices');
    const numbers = new Varints(fromBase64(bytes ?? ''));
    const last = at + (count ?? 0);
    slices.cpu.fill(cpu, at, last);
    let time = 0;
    while (at < last) {
      const next = Math.min(last, at + ITEMS_PER_STEP);
      time = readSlices(slices, numbers, at, next, time);
      at = next;
      yield;
    }
    if (!Number.isFinite(time) || !numbers.isDone) throw damageError('slices');
  }
  return slices;
}

/** Reads slices of a CPU; starts are relative to the end of the slice before, at first `time`.
 * Returns the end of the last. */
function readSlices(
  slices: Slices,
  numbers: Varints,
  from: number,
  to: number,
  time: number,
): number {
  for (let at = from; at < to; at += 1) {
    const start = time + numbers.next();
    const length = numbers.next();
    const code = numbers.next();
    slices.start[at] = start;
    slices.length[at] = length;
    slices.thread[at] = Math.floor(code / 4);
    slices.end[at] = code % 4;
    time = start + length;
    if (!(slices.thread[at]! < slices.threads.length))
      throw damageError('slices');
  }
  return time;
}

/** Waits: `who` is the thread's number. */
export function* decodeWaits(
  waits: TimelineRecord['waits'],
): Steps<Spans | null> {
  if (!waits) return null;
  const spans = yield* unpackSpans(waits, 8, 'waits');
  for (let at = 0; at < spans.count; at += 1)
    spans.who[at] = waits.threads?.[spans.who[at]!] ?? 0;
  return spans;
}

/** Needless sharing: `who` is how many threads could have been alone. */
export function* decodeSharing(
  sharing: TimelineRecord['sharing'],
): Steps<Spans | null> {
  return sharing ? yield* unpackSpans(sharing, 4, 'spans of sharing') : null;
}

function* unpackSpans(
  packed: PackedWaitsRecord | PackedSharingRecord,
  codes: number,
  what: string,
): Steps<Spans> {
  const { form, count, bytes, causes } = packed;
  if (
    form !== PACKED_FORM ||
    !finite(count) ||
    typeof bytes !== 'string' ||
    !causes ||
    count > bytes.length
  )
    throw damageError(what);
  const spans: Spans = {
    count,
    start: new Float64Array(count),
    length: new Float64Array(count),
    place: new Uint32Array(count),
    who: new Uint32Array(count),
    cause: new Uint8Array(count),
    causes,
  };
  const numbers = new Varints(fromBase64(bytes));
  let time = 0;
  for (let at = 0; at < count; at += 1) {
    time += numbers.next();
    spans.start[at] = time;
    spans.length[at] = numbers.next();
    spans.place[at] = numbers.next();
    const code = numbers.next();
    if (!Number.isFinite(code)) throw damageError(what);
    spans.who[at] = Math.floor(code / codes);
    spans.cause[at] = code % codes;
    if (at % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
  }
  if (!numbers.isDone) throw damageError(what);
  return spans;
}
