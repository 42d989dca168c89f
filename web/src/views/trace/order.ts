// Sorts slices by time, and derives from that order the CPU from which each slice's thread came and
// the wait that ended with it.

import type { Slices, Spans } from './decode';
import type { Steps } from './steps';

/** Slices per step. */
const PART_LENGTH = 65_536;

/** Splits the order into parts, one for each step of work. */
export function* splitIntoParts(order: Uint32Array): Iterable<Uint32Array> {
  for (let at = 0; at < order.length; at += PART_LENGTH)
    yield order.subarray(at, at + PART_LENGTH);
}

/** The CPU before a thread's first slice. */
const NOWHERE = -1;

/** Numbers of slices with their start times: moving both is faster than looking times up. */
interface Run {
  numbers: Uint32Array;
  times: Float64Array;
}

/** Numbers of all slices in the order of time: a merge of each CPU's slices, which are sorted. */
export function* sortByTime(slices: Slices): Steps<Uint32Array> {
  const { count, cpu, start } = slices;
  let runs: number[] = [0];
  for (let at = 1; at < count; at += 1)
    if (cpu[at] !== cpu[at - 1]) runs.push(at);
  runs.push(count);
  const numbers = new Uint32Array(count);
  for (let at = 0; at < count; at += 1) numbers[at] = at;
  let from: Run = { numbers, times: start.slice() };
  let to: Run = {
    numbers: new Uint32Array(count),
    times: new Float64Array(count),
  };
  while (runs.length > 2) {
    const merged: number[] = [];
    for (let run = 0; run + 1 < runs.length; run += 2) {
      const middle = runs[run + 1]!;
      mergeRuns(from, to, runs[run]!, middle, runs[run + 2] ?? middle);
      merged.push(runs[run]!);
      yield;
    }
    runs = [...merged, count];
    [from, to] = [to, from];
  }
  return from.numbers;
}

function mergeRuns(
  from: Run,
  to: Run,
  first: number,
  middle: number,
  end: number,
): void {
  let left = first;
  let right = middle;
  for (let at = first; at < end; at += 1) {
    const isLeft =
      left < middle &&
      (right >= end || from.times[left]! <= from.times[right]!);
    const next = isLeft ? left++ : right++;
    to.numbers[at] = from.numbers[next]!;
    to.times[at] = from.times[next]!;
  }
}

/** The CPU that each slice's thread ran on before it; NOWHERE for its first. */
export function* previousCpus(
  slices: Slices,
  order: Uint32Array,
): Steps<Int32Array> {
  const previous = new Int32Array(slices.count);
  const last = new Int32Array(slices.threads.length).fill(NOWHERE);
  for (const part of splitIntoParts(order)) {
    for (const at of part) {
      const thread = slices.thread[at]!;
      previous[at] = last[thread]!;
      last[thread] = slices.cpu[at]!;
    }
    yield;
  }
  return previous;
}

/** Times that went through seconds are exact to this, ns. */
const ROUNDING_NS = 2;

/** For each slice, the index of the cause of the wait that ended with it, plus 1; 0 if no recorded
 * wait did. */
export function* findWaitCauses(
  slices: Slices,
  order: Uint32Array,
  waits: Spans | null,
): Steps<Uint8Array> {
  const causes = new Uint8Array(slices.count);
  if (!waits) return causes;
  // The wait of each thread that has not ended yet: a thread has only one at a time.
  const open = new Map<number, number>();
  let next = 0;
  for (const part of splitIntoParts(order)) {
    for (const at of part) {
      const start = slices.start[at]!;
      for (; next < waits.count && waits.start[next]! <= start; next += 1)
        open.set(waits.who[next]!, next);
      const thread = slices.threads[slices.thread[at]!]!;
      const wait = open.get(thread);
      if (wait === undefined) continue;
      const end = waits.start[wait]! + waits.length[wait]!;
      if (Math.abs(end - start) <= ROUNDING_NS)
        causes[at] = waits.cause[wait]! + 1;
      if (end <= start + ROUNDING_NS) open.delete(thread);
    }
    yield;
  }
  return causes;
}
