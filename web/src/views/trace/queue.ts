// How many threads wait for each CPU, pixel column by pixel column.

import type { Scene, Window } from './scene';

/** Mean number of kept waits in each column of each row. */
export class QueueDepth {
  private depth = new Float32Array(0);

  /** Sums waits between two times; `rowOf` gives the row of a CPU. */
  sum(
    scene: Pick<Scene, 'waits' | 'firstWait'>,
    rowOf: ReadonlyMap<number, number>,
    width: number,
    { from, to }: Window,
  ): void {
    const rows = Math.max(0, ...rowOf.values()) + 1;
    // One column more: where what goes beyond the last one ends.
    const stride = width + 1;
    if (this.depth.length !== rows * stride)
      this.depth = new Float32Array(rows * stride);
    const steps = this.depth.fill(0);
    const scale = width / (to - from);
    const { waits } = scene;
    const last = waits?.count ?? 0;
    for (
      let at = scene.firstWait(from);
      waits && at < last && waits.start[at]! < to;
      at += 1
    ) {
      const end = waits.start[at]! + waits.length[at]!;
      const row = rowOf.get(waits.place[at]!);
      if (end <= from || row === undefined) continue;
      edge(steps, row * stride, width, (waits.start[at]! - from) * scale, 1);
      edge(steps, row * stride, width, (end - from) * scale, -1);
    }
    for (let row = 0; row < rows; row += 1)
      for (let x = 1; x < stride; x += 1)
        steps[row * stride + x]! += steps[row * stride + x - 1]!;
    this.stride = stride;
  }

  private stride = 1;

  at(row: number, column: number): number {
    return this.depth[row * this.stride + column]!;
  }
}

/** A step up or down at a place within a column: the part after it in that column, all of it from the next on. */
function edge(
  steps: Float32Array,
  offset: number,
  width: number,
  place: number,
  by: number,
): void {
  if (place >= width) return;
  const column = Math.max(0, Math.floor(place));
  const part = column + 1 - Math.max(0, place);
  steps[offset + column]! += by * part;
  steps[offset + column + 1]! += by * (1 - part);
}
