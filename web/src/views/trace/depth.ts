// How many spans of time overlap, pixel column by pixel column: threads that wait for a CPU, or the
// share of it that some threads have.

import type { Scene, Window } from './scene';

/** Mean number of spans in each column of each row. */
export class Depth {
  private steps = new Float32Array(0);
  private stride = 1;
  private from = 0;
  private scale = 1;

  /** Restarts, with columns between two times. */
  begin(rows: number, width: number, { from, to }: Window): void {
    // One more column, for what ends beyond the last one.
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
    this.edge(row, place, 1);
    this.edge(row, end, -1);
  }

  /** Steps become sums; what is added later is of a new beginning. */
  settle(): void {
    const { steps, stride } = this;
    for (let at = 1; at < steps.length; at += 1)
      if (at % stride > 0) steps[at]! += steps[at - 1]!;
  }

  at(row: number, column: number): number {
    return this.steps[row * this.stride + column]!;
  }

  /** A step up or down at a place within a column: the part after it in that column, all of it from the next on. */
  private edge(row: number, place: number, by: number): void {
    if (place >= this.stride - 1) return;
    const column = Math.max(0, Math.floor(place));
    const part = column + 1 - Math.max(0, place);
    const at = row * this.stride + column;
    this.steps[at]! += by * part;
    this.steps[at + 1]! += by * (1 - part);
  }
}

/** Waits that are kept, by the CPU that they are queued on; `rowOf` gives its row. */
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
