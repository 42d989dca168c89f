// Rows of the timeline: slices by CPU or by thread, and their sums in each
// pixel column.

import type { Slices } from './decode';
import { splitIntoParts } from './order';
import type { Steps } from './steps';

/** What rows show. */
export type Rows = 'cpus' | 'threads';

/** Slices of all rows, row by row; the slices of a row do not overlap. */
export interface Lanes {
  /** The CPU of each row, or the index of its thread. */
  keys: number[];
  /** Index of each row's first slice, and one more for the end. */
  first: Uint32Array;
  start: Float64Array;
  length: Float64Array;
  /** The key of a slice's colour: the index of its thread, or in thread rows its CPU. */
  colour: Uint32Array;
  /** Number of each slice in the order of `Slices`. */
  origin: Uint32Array;
  /** 1 if the slice's thread was on another CPU before. */
  moved: Uint8Array;
  /** Largest `colour` + 1. */
  colours: number;
}

/** The input of lanes: slices, their order in time, and the CPU that each one's thread came
 * from. */
export interface OrderedSlices {
  slices: Slices;
  order: Uint32Array;
  previous: Int32Array;
}

/** Allocates room for the slices of all rows. */
function allocateLanes(keys: readonly number[], first: Uint32Array): Lanes {
  const many = first[keys.length]!;
  return {
    keys: [...keys],
    first,
    start: new Float64Array(many),
    length: new Float64Array(many),
    colour: new Uint32Array(many),
    origin: new Uint32Array(many),
    moved: new Uint8Array(many),
    colours: 1,
  };
}

/** Start of each row, from the rows' numbers of slices. */
function toRowStarts(counts: readonly number[]): Uint32Array {
  const first = new Uint32Array(counts.length + 1);
  counts.forEach((many, row) => (first[row + 1] = first[row]! + many));
  return first;
}

/** A row for each of these CPUs, in their order; CPUs without slices have empty rows. */
export function lanesByCpu(
  { slices, previous }: OrderedSlices,
  cpus: readonly number[],
): Lanes {
  // Slices are ordered by CPU, then by time: rows are copied unchanged.
  const runs = new Map<number, [from: number, to: number]>();
  for (let at = 0; at < slices.count;) {
    const cpu = slices.cpu[at]!;
    const from = at;
    while (at < slices.count && slices.cpu[at] === cpu) at += 1;
    runs.set(cpu, [from, at]);
  }
  const run = (cpu: number): [number, number] => runs.get(cpu) ?? [0, 0];
  const shown = allocateLanes(
    cpus,
    toRowStarts(cpus.map((cpu) => run(cpu)[1] - run(cpu)[0])),
  );
  cpus.forEach((cpu, row) => {
    const [from, to] = run(cpu);
    const first = shown.first[row]!;
    shown.start.set(slices.start.subarray(from, to), first);
    shown.length.set(slices.length.subarray(from, to), first);
    shown.colour.set(slices.thread.subarray(from, to), first);
    for (let at = from; at < to; at += 1) {
      const before = previous[at]!;
      shown.origin[first + at - from] = at;
      shown.moved[first + at - from] = before >= 0 && before !== cpu ? 1 : 0;
    }
  });
  return { ...shown, colours: Math.max(1, slices.threads.length) };
}

/** A row for each of these threads, in their order. */
export function* lanesByThread(
  { slices, order, previous }: OrderedSlices,
  threads: readonly number[],
): Steps<Lanes> {
  const rows = new Int32Array(slices.threads.length).fill(-1);
  threads.forEach((thread, row) => (rows[thread] = row));
  const counts = threads.map(() => 0);
  for (let at = 0; at < slices.count; at += 1) {
    const row = rows[slices.thread[at]!]!;
    if (row >= 0) counts[row]! += 1;
  }
  const shown = allocateLanes(threads, toRowStarts(counts));
  const next = shown.first.slice();
  let colours = 1;
  for (const part of splitIntoParts(order)) {
    for (const from of part) {
      const row = rows[slices.thread[from]!]!;
      if (row < 0) continue;
      const at = next[row]!++;
      const cpu = slices.cpu[from]!;
      const before = previous[from]!;
      shown.origin[at] = from;
      shown.start[at] = slices.start[from]!;
      shown.length[at] = slices.length[from]!;
      shown.colour[at] = cpu;
      shown.moved[at] = before >= 0 && before !== cpu ? 1 : 0;
      colours = Math.max(colours, cpu + 1);
    }
    yield;
  }
  return { ...shown, colours };
}

/** The first slice of a row that ends after `time`. */
export function firstEndingAfter(
  lanes: Lanes,
  row: number,
  time: number,
): number {
  let low = lanes.first[row]!;
  let high = lanes.first[row + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (lanes.start[middle]! + lanes.length[middle]! > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first slice of a row that begins at `time` or later. */
export function firstStartingFrom(
  lanes: Lanes,
  row: number,
  time: number,
): number {
  let low = lanes.first[row]!;
  let high = lanes.first[row + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (lanes.start[middle]! >= time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The index of the slice of a row at a time; null if the row is empty there. */
export function findSlice(
  lanes: Lanes,
  row: number,
  time: number,
): number | null {
  const at = firstEndingAfter(lanes, row, time);
  return at < lanes.first[row + 1]! && lanes.start[at]! <= time ? at : null;
}

/** The sums of each pixel column of a row. */
export interface Columns {
  /** Share of the column's time with slices. */
  share: Float64Array;
  /** The key with most of that time. */
  colour: Uint32Array;
  /** Slices that touch the column. */
  count: Uint32Array;
  /** Slices that began in the column with a thread from another CPU. */
  arrivals: Uint32Array;
}

/** The keys by which slices are summed, in the lanes' order. */
export interface Keys {
  keys: Uint32Array;
  /** Largest key + 1. */
  count: number;
}

/** A key of a thread and a cause is thread × this + cause. */
export const CAUSE_KEYS = 16;

/** Threads in CPU rows, CPUs in thread rows; with `causes`, each slice's cause besides. */
export function buildKeys(
  lanes: Lanes,
  rows: Rows,
  causes: Uint8Array | null,
): Keys {
  if (!causes) return { keys: lanes.colour, count: lanes.colours };
  const isThread = rows === 'threads';
  const keys = new Uint32Array(lanes.origin.length);
  for (let at = 0; at < keys.length; at += 1) {
    const cause = causes[lanes.origin[at]!]!;
    keys[at] = isThread ? cause : lanes.colour[at]! * CAUSE_KEYS + cause;
  }
  return { keys, count: isThread ? CAUSE_KEYS : lanes.colours * CAUSE_KEYS };
}

/** Sums the slices of a row in pixel columns; its memory is used again for each row. */
export class ColumnSums {
  readonly columns: Columns;
  private readonly sums: Float64Array;
  private readonly touched: Uint32Array;
  private many = 0;
  private column = -1;

  constructor(
    readonly width: number,
    readonly colours: number,
  ) {
    this.columns = {
      share: new Float64Array(width),
      colour: new Uint32Array(width),
      count: new Uint32Array(width),
      arrivals: new Uint32Array(width),
    };
    this.sums = new Float64Array(colours);
    this.touched = new Uint32Array(colours);
  }

  /** Sums the row's slices between two times; each column's colour is the one with most time in it. */
  sum(
    lanes: Lanes,
    row: number,
    from: number,
    to: number,
    keys: Uint32Array = lanes.colour,
  ): Columns {
    const { columns, width } = this;
    this.clear();
    const scale = width / (to - from);
    const last = lanes.first[row + 1]!;
    for (
      let at = firstEndingAfter(lanes, row, from);
      at < last && lanes.start[at]! < to;
      at += 1
    ) {
      const start = (lanes.start[at]! - from) * scale;
      const begin = Math.max(0, start);
      const end = Math.min(width, start + lanes.length[at]! * scale);
      this.addSlice(begin, end, keys[at]!);
      if (lanes.moved[at] && start >= 0)
        columns.arrivals[Math.min(width - 1, Math.floor(start))]! += 1;
    }
    this.closeColumn();
    return columns;
  }

  /** The same from finer columns of the whole trace: each column takes the finer ones that begin in
   * it. */
  sumBins(bins: Columns, from: number, to: number, span: number): Columns {
    const { columns, width } = this;
    this.clear();
    const many = bins.share.length;
    const per = (((to - from) / span) * many) / width;
    const offset = (from / span) * many;
    for (let column = 0; column < width; column += 1) {
      const first = Math.floor(offset + column * per);
      const last = Math.min(many, Math.floor(offset + (column + 1) * per));
      const weight = 1 / Math.max(1, last - first);
      for (let bin = first; bin < last; bin += 1) {
        columns.arrivals[column]! += bins.arrivals[bin]!;
        const count = bins.count[bin]!;
        if (count === 0) continue;
        this.addPart(column, bins.colour[bin]!, bins.share[bin]! * weight);
        columns.count[column]! += count - 1;
      }
    }
    this.closeColumn();
    return columns;
  }

  private clear(): void {
    this.columns.share.fill(0);
    this.columns.count.fill(0);
    this.columns.arrivals.fill(0);
  }

  /** Adds a slice between two positions, in columns. */
  private addSlice(begin: number, end: number, colour: number): void {
    const head = Math.min(this.width - 1, Math.floor(begin));
    const tail = Math.min(this.width - 1, Math.floor(end));
    if (head === tail) {
      this.addPart(head, colour, end - begin);
      return;
    }
    this.addPart(head, colour, head + 1 - begin);
    const { share, colour: colours, count } = this.columns;
    if (tail > head + 1) {
      share.fill(1, head + 1, tail);
      colours.fill(colour, head + 1, tail);
      count.fill(1, head + 1, tail);
    }
    if (end > tail) this.addPart(tail, colour, end - tail);
  }

  private addPart(column: number, colour: number, share: number): void {
    if (column !== this.column) this.closeColumn();
    this.column = column;
    if (this.sums[colour] === 0) this.touched[this.many++] = colour;
    // A slice of length zero counts as well; the smallest number marks its key as used.
    this.sums[colour]! += share || Number.MIN_VALUE;
    this.columns.count[column]! += 1;
  }

  private closeColumn(): void {
    if (this.column < 0) return;
    let most = -1;
    let all = 0;
    for (let at = 0; at < this.many; at += 1) {
      const colour = this.touched[at]!;
      const sum = this.sums[colour]!;
      all += sum;
      if (sum > most) {
        most = sum;
        this.columns.colour[this.column] = colour;
      }
      this.sums[colour] = 0;
    }
    this.columns.share[this.column] = Math.min(1, all);
    this.many = 0;
    this.column = -1;
  }
}
