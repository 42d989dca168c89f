// Counts overlapping spans of time in each pixel column: threads that wait for a CPU, or the share
// of a CPU that some threads use.

import type { Scene, Window } from './scene';

/** Mean number of spans in each column of each row. */
export class Depth {
  private steps = new Float32Array(0);
  private stride = 1;
  private from = 0;
  private scale = 1;

  /** Clears all, and sets rows, columns and the window of time. */
  begin(rows: number, width: number, { from, to }: Window): void {
    // One more column takes the ends of spans beyond the last one.
    this.stride = width + 1;
    this.from = from;
    this.scale = width / (to - from);
    if (this.steps.length !== rows * this.stride)
      this.steps = new Float32Array(rows * this.stride);
    this.steps.fill(0);
  }

  add(row: number, start: number, length: number): void {
    const place = (start - this.from) * this.scale;
    const end = place + length * this.scale;
    if (end <= 0) return;
    this.addStep(row, place, 1);
    this.addStep(row, end, -1);
  }

  /** Turns steps into sums; call `begin` before adding again. */
  settle(): void {
    const { steps, stride } = this;
    for (let at = 1; at < steps.length; at += 1)
      if (at % stride > 0) steps[at]! += steps[at - 1]!;
  }

  at(row: number, column: number): number {
    return this.steps[row * this.stride + column]!;
  }

  /** Adds a step up or down within a column: its column gets the part after it, the next one the
   * rest. */
  private addStep(row: number, place: number, by: number): void {
    if (place >= this.stride - 1) return;
    const column = Math.max(0, Math.floor(place));
    const part = column + 1 - Math.max(0, place);
    const at = row * this.stride + column;
    this.steps[at]! += by * part;
    this.steps[at + 1]! += by * (1 - part);
  }
}

/** Sums recorded waits by the CPU on which they were queued; `rowOf` maps it to its row. */
export function sumWaits(
  depth: Depth,
  scene: Pick<Scene, 'waits' | 'firstWait'>,
  rowOf: ReadonlyMap<number, number>,
  width: number,
  window: Window,
): void {
  depth.begin(Math.max(0, ...rowOf.values()) + 1, width, window);
  const { waits } = scene;
  for (
    let at = scene.firstWait(window.from);
    waits && at < waits.count && waits.start[at]! < window.to;
    at += 1
  ) {
    const row = rowOf.get(waits.place[at]!);
    if (row !== undefined) depth.add(row, waits.start[at]!, waits.length[at]!);
  }
  depth.settle();
}
