// The content and sizes of one frame of the timeline.

import type { Theme } from '../../theme';
import type { ColourBy } from './colours';
import type { Rows } from './lanes';
import type { Scene, Window } from './scene';

/** Height of the time axis, CSS pixels. */
export const AXIS_HEIGHT = 22;
const MIN_ROW_HEIGHT = 13;
const MAX_ROW_HEIGHT = 40;

/** The content of a frame; sizes in CSS pixels. */
export interface Frame {
  scene: Scene;
  rows: Rows;
  window: Window;
  width: number;
  height: number;
  /** Height of a row. */
  row: number;
  /** How far the rows are scrolled. */
  scrolled: number;
  gutter: number;
  cursor: { row: number; time: number } | null;
  selection: Window | null;
  colourBy: ColourBy;
  /** Indices of highlighted threads; null: all are. */
  marked: ReadonlySet<number> | null;
  /** Index of the thread whose path is drawn. */
  thread: number | null;
  theme: Theme;
}

export function rowCount(scene: Scene, rows: Rows): number {
  return rows === 'cpus' ? scene.cpus.length : scene.threads.length;
}

/** The height of rows that together fill a frame, within readable limits. */
export function rowHeight(rows: number, height: number): number {
  const even = Math.floor((height - AXIS_HEIGHT) / Math.max(1, rows));
  return Math.min(MAX_ROW_HEIGHT, Math.max(MIN_ROW_HEIGHT, even));
}

export function* visibleRows(frame: Frame): Iterable<number> {
  const last = Math.min(
    rowCount(frame.scene, frame.rows),
    Math.ceil((frame.scrolled + frame.height - AXIS_HEIGHT) / frame.row),
  );
  for (
    let row = Math.max(0, Math.floor(frame.scrolled / frame.row));
    row < last;
    row += 1
  )
    yield row;
}

/** Pixels of a nanosecond. */
export const pixelsPerNs = ({ width, gutter, window }: Frame): number =>
  (width - gutter) / (window.to - window.from);
