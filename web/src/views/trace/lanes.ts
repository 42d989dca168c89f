// Rows of the timeline: slices by CPU or by thread, and what of them is seen
// in each pixel column.

import type { Slices } from './decode';

/** Rows one after the other; the slices of a row do not overlap. */
export interface Lanes {
  /** CPU or place among the threads, of each row. */
  keys: number[];
  /** Where each row's slices begin; one more at the end. */
  first: Uint32Array;
  start: Float64Array;
  length: Float64Array;
  /** What colours a slice: the thread, or in thread rows the CPU. */
  colour: Uint32Array;
  /** Number of each slice in the order of `Slices`. */
  origin: Uint32Array;
  /** Largest `colour` + 1. */
  colours: number;
}

/** A row for each CPU, in the order given; CPUs without slices have empty rows. */
export function byCpu(slices: Slices, cpus: readonly number[]): Lanes {
  return lanes(slices, cpus, slices.cpu, slices.thread);
}

/** A row for each thread, in the order given. */
export function byThread(slices: Slices, threads: readonly number[]): Lanes {
  return lanes(slices, threads, slices.thread, slices.cpu);
}

function lanes(
  slices: Slices,
  keys: readonly number[],
  key: Uint32Array,
  colour: Uint32Array,
): Lanes {
  let largest = 0;
  for (let at = 0; at < slices.count; at += 1)
    largest = Math.max(largest, key[at]!);
  const rows = new Int32Array(largest + 1).fill(-1);
  keys.forEach((value, row) => {
    if (value <= largest) rows[value] = row;
  });
  const first = new Uint32Array(keys.length + 1);
  for (let at = 0; at < slices.count; at += 1) {
    const row = rows[key[at]!]!;
    if (row >= 0) first[row + 1]! += 1;
  }
  for (let row = 0; row < keys.length; row += 1) first[row + 1]! += first[row]!;
  const origin = new Uint32Array(first[keys.length]!);
  const next = first.slice();
  for (let at = 0; at < slices.count; at += 1) {
    const row = rows[key[at]!]!;
    if (row >= 0) origin[next[row]!++] = at;
  }
  for (let row = 0; row < keys.length; row += 1)
    sortByStart(origin, first[row]!, first[row + 1]!, slices.start);
  let colours = 1;
  const told: Lanes = {
    keys: [...keys],
    first,
    start: new Float64Array(origin.length),
    length: new Float64Array(origin.length),
    colour: new Uint32Array(origin.length),
    origin,
    colours,
  };
  origin.forEach((from, at) => {
    told.start[at] = slices.start[from]!;
    told.length[at] = slices.length[from]!;
    told.colour[at] = colour[from]!;
    colours = Math.max(colours, colour[from]! + 1);
  });
  return { ...told, colours };
}

/** A thread's slices come CPU by CPU: each part is sorted already, which the sort makes use of. */
function sortByStart(
  origin: Uint32Array,
  from: number,
  to: number,
  start: Float64Array,
): void {
  let isSorted = true;
  for (let at = from + 1; at < to && isSorted; at += 1)
    isSorted = start[origin[at - 1]!]! <= start[origin[at]!]!;
  if (isSorted) return;
  const part = Array.from(origin.subarray(from, to)).sort(
    (a, b) => start[a]! - start[b]!,
  );
  origin.set(part, from);
}

/** The first slice of a row that ends after `time`. */
export function firstAfter(lanes: Lanes, row: number, time: number): number {
  let low = lanes.first[row]!;
  let high = lanes.first[row + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (lanes.start[middle]! + lanes.length[middle]! > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The slice of a row at a time; null where there is none. */
export function sliceAt(
  lanes: Lanes,
  row: number,
  time: number,
): number | null {
  const at = firstAfter(lanes, row, time);
  return at < lanes.first[row + 1]! && lanes.start[at]! <= time ? at : null;
}

/** What each pixel column of a row shows. */
export interface Columns {
  /** Share of the column's time with slices. */
  share: Float64Array;
  /** What of them took most of it. */
  colour: Uint32Array;
  /** Slices that have a part in it. */
  count: Uint32Array;
}

/** Room for columns, and for sums over colours. */
export class Summer {
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
    };
    this.sums = new Float64Array(colours);
    this.touched = new Uint32Array(colours);
  }

  /** Sums the row's slices between two times; each column's colour is the one with most time in it. */
  sum(lanes: Lanes, row: number, from: number, to: number): Columns {
    const { columns, width } = this;
    columns.share.fill(0);
    columns.count.fill(0);
    const scale = width / (to - from);
    const last = lanes.first[row + 1]!;
    for (
      let at = firstAfter(lanes, row, from);
      at < last && lanes.start[at]! < to;
      at += 1
    ) {
      const begin = Math.max(0, (lanes.start[at]! - from) * scale);
      const end = Math.min(
        width,
        (lanes.start[at]! + lanes.length[at]! - from) * scale,
      );
      this.add(begin, end, lanes.colour[at]!);
    }
    this.settle();
    return columns;
  }

  /** A slice between two places, in columns. */
  private add(begin: number, end: number, colour: number): void {
    const head = Math.min(this.width - 1, Math.floor(begin));
    const tail = Math.min(this.width - 1, Math.floor(end));
    if (head === tail) {
      this.part(head, colour, end - begin);
      return;
    }
    this.part(head, colour, head + 1 - begin);
    const { share, colour: colours, count } = this.columns;
    if (tail > head + 1) {
      share.fill(1, head + 1, tail);
      colours.fill(colour, head + 1, tail);
      count.fill(1, head + 1, tail);
    }
    if (end > tail) this.part(tail, colour, end - tail);
  }

  private part(column: number, colour: number, share: number): void {
    if (column !== this.column) this.settle();
    this.column = column;
    if (this.sums[colour] === 0) this.touched[this.many++] = colour;
    // A slice of no length still counts, and leaves the sum as it is.
    this.sums[colour]! += share || Number.MIN_VALUE;
    this.columns.count[column]! += 1;
  }

  private settle(): void {
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
