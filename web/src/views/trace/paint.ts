// One frame of the timeline, on a canvas.

import { seconds } from '../../format';
import type { Theme } from '../../theme';
import type { Lanes } from './lanes';
import { firstAfter, Summer } from './lanes';
import { inkOn, pixel, Raster } from './raster';
import type { Rows, Scene, Window } from './scene';
import { moveOf, rowName, ticks } from './scene';

export const ROW = 18;
export const AXIS = 22;

/** What a frame shows; sizes in CSS pixels. */
export interface Frame {
  scene: Scene;
  rows: Rows;
  window: Window;
  width: number;
  height: number;
  /** How far the rows are scrolled. */
  scrolled: number;
  gutter: number;
  cursor: { row: number; time: number } | null;
  selection: { from: number; to: number } | null;
  theme: Theme;
}

/** Keeps what is costly to make from frame to frame. */
export class Painter {
  private summer: Summer | null = null;
  private raster: Raster | null = null;
  private painted = '';

  paint(context: CanvasRenderingContext2D, frame: Frame, ratio: number): void {
    const width = Math.max(1, Math.round((frame.width - frame.gutter) * ratio));
    const height = Math.max(1, Math.round((frame.height - AXIS) * ratio));
    if (this.raster?.width !== width || this.raster.height !== height)
      this.raster = new Raster(width, height);
    const lanes = frame.scene.lanes(frame.rows);
    const colours = lanes?.colours ?? 1;
    if (this.summer?.width !== width || this.summer.colours !== colours)
      this.summer = new Summer(width, colours);
    const palette = new Palette(frame);
    context.setTransform(1, 0, 0, 1, 0, 0);
    // A pointer that moves changes the cursor only: the rows stay as they are.
    const rows = [
      frame.rows,
      frame.window.from,
      frame.window.to,
      frame.scrolled,
      frame.theme.isDark,
      width,
      height,
    ].join();
    if (rows !== this.painted)
      this.paintRows(this.raster, this.summer, frame, palette, ratio);
    this.painted = rows;
    context.fillStyle = frame.theme.background;
    context.fillRect(0, 0, frame.width * ratio, frame.height * ratio);
    this.raster.put(
      context,
      Math.round(frame.gutter * ratio),
      Math.round(AXIS * ratio),
    );
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (lanes) words(context, frame, lanes, palette);
    axis(context, frame);
    labels(context, frame);
    marks(context, frame);
  }

  private paintRows(
    raster: Raster,
    summer: Summer,
    frame: Frame,
    palette: Palette,
    ratio: number,
  ): void {
    const lanes = frame.scene.lanes(frame.rows);
    raster.clear(pixel(frame.theme.background));
    for (const row of rowsSeen(frame)) {
      const y = (row * ROW - frame.scrolled) * ratio;
      separate(raster, frame, row, y, ratio);
      if (lanes)
        slicesOf(
          raster,
          summer.sum(lanes, row, frame.window.from, frame.window.to),
          palette,
          y,
          ratio,
        );
      else spansOf(raster, frame, row, y, ratio);
    }
    if (frame.rows === 'cpus') sharingOf(raster, frame, ratio);
    else waitsOf(raster, frame, ratio);
  }
}

/** Colours by thread or CPU: the same one keeps its colour. */
class Palette {
  private readonly rank: Map<number, number>;
  private readonly pixels: number[];

  constructor(private readonly frame: Frame) {
    const order =
      frame.rows === 'cpus' ? frame.scene.threads : frame.scene.cpus;
    this.rank = new Map(
      order.map((key, at) => [key, at % frame.theme.series.length]),
    );
    this.pixels = frame.theme.series.map(pixel);
  }

  pixel(key: number): number {
    return this.pixels[this.rank.get(key) ?? 0]!;
  }

  css(key: number): string {
    return this.frame.theme.series[this.rank.get(key) ?? 0]!;
  }
}

export function rowCount(scene: Scene, rows: Rows): number {
  return rows === 'cpus' ? scene.cpus.length : scene.threads.length;
}

function* rowsSeen(frame: Frame): Iterable<number> {
  const last = Math.min(
    rowCount(frame.scene, frame.rows),
    Math.ceil((frame.scrolled + frame.height - AXIS) / ROW),
  );
  for (
    let row = Math.max(0, Math.floor(frame.scrolled / ROW));
    row < last;
    row += 1
  )
    yield row;
}

/** A line where another core begins, or between rows. */
function separate(
  raster: Raster,
  frame: Frame,
  row: number,
  y: number,
  ratio: number,
): void {
  const { scene } = frame;
  const core = (at: number): number | undefined =>
    scene.coreOf.get(scene.cpus[at]!);
  const isBoundary =
    frame.rows === 'threads' ||
    row === 0 ||
    core(row) === undefined ||
    core(row) !== core(row - 1);
  if (isBoundary)
    raster.fill(
      0,
      raster.width,
      y,
      y + Math.max(1, ratio / 2),
      pixel(frame.theme.line),
    );
}

/** Bars as high as the share of time in their column. */
function slicesOf(
  raster: Raster,
  columns: Summer['columns'],
  palette: Palette,
  y: number,
  ratio: number,
): void {
  const bottom = y + (ROW - 2) * ratio;
  const most = (ROW - 4) * ratio;
  const { share, colour, count } = columns;
  for (let x = 0; x < share.length;) {
    if (count[x] === 0) {
      x += 1;
      continue;
    }
    let end = x + 1;
    while (
      end < share.length &&
      share[end] === share[x] &&
      colour[end] === colour[x] &&
      count[end]! > 0
    )
      end += 1;
    const high = Math.max(ratio, share[x]! * most);
    raster.fill(x, end, bottom - high, bottom, palette.pixel(colour[x]!));
    x = end;
  }
}

/** Of a trace that has no slices: traced threads solid, others hatched above. */
function spansOf(
  raster: Raster,
  frame: Frame,
  row: number,
  y: number,
  ratio: number,
): void {
  const { scene, window, theme } = frame;
  const told = scene.spans?.cpus.find((spans) => spans.cpu === scene.cpus[row]);
  if (!scene.spans || !told) return;
  const scale = raster.width / (window.to - window.from);
  const bottom = y + (ROW - 2) * ratio;
  const most = (ROW - 4) * ratio;
  told.own?.forEach((own, at) => {
    const x0 = (at * scene.spans!.lengthNs - window.from) * scale;
    const x1 = x0 + scene.spans!.lengthNs * scale;
    if (x1 <= 0 || x0 >= raster.width) return;
    const middle = bottom - own * most;
    raster.fill(x0, x1, middle, bottom, pixel(theme.series[0]!));
    raster.hatch(
      x0,
      x1,
      middle - (told.foreign?.[at] ?? 0) * most,
      middle,
      pixel(theme.neutral),
    );
  });
}

/** Needless sharing: a hatched band below the CPUs of the core. */
function sharingOf(raster: Raster, frame: Frame, ratio: number): void {
  const { scene, window, theme } = frame;
  const { sharing } = scene;
  if (!sharing) return;
  const rowOf = new Map(scene.cpus.map((cpu, row) => [cpu, row]));
  const scale = raster.width / (window.to - window.from);
  const colour = pixel(theme.text);
  const drawn = new Map<number, number>();
  for (
    let at = 0;
    at < sharing.count && sharing.start[at]! < window.to;
    at += 1
  ) {
    const end = sharing.start[at]! + sharing.length[at]!;
    if (end <= window.from) continue;
    const x0 = (sharing.start[at]! - window.from) * scale;
    const x1 = Math.max(x0 + 1, (end - window.from) * scale);
    for (const cpu of scene.cpusOf.get(sharing.place[at]!) ?? []) {
      const row = rowOf.get(cpu);
      // What falls on a pixel that is marked already changes nothing.
      if (row === undefined || x1 <= (drawn.get(row) ?? -1)) continue;
      drawn.set(row, Math.ceil(x1));
      const y = (row * ROW - frame.scrolled + ROW - 6) * ratio;
      raster.hatch(x0, x1, y, y + 4 * ratio, colour, 4);
    }
  }
}

/** Waits: a thin hatched mark at half height. */
function waitsOf(raster: Raster, frame: Frame, ratio: number): void {
  const { scene, window, theme } = frame;
  const { waits } = scene;
  if (!waits) return;
  const rowOf = new Map(
    scene.threads.map((place, row) => [scene.slices!.threads[place]!, row]),
  );
  const scale = raster.width / (window.to - window.from);
  const colour = pixel(theme.worse);
  for (let at = 0; at < waits.count && waits.start[at]! < window.to; at += 1) {
    const end = waits.start[at]! + waits.length[at]!;
    const row = rowOf.get(waits.who[at]!);
    if (end <= window.from || row === undefined) continue;
    const y = (row * ROW - frame.scrolled + 7) * ratio;
    if (y < -ROW * ratio || y > raster.height) continue;
    raster.hatch(
      (waits.start[at]! - window.from) * scale,
      (end - window.from) * scale,
      y,
      y + 5 * ratio,
      colour,
      4,
    );
  }
}

/** Names in slices that have room for them; ticks where a thread came from another CPU. */
function words(
  context: CanvasRenderingContext2D,
  frame: Frame,
  lanes: Lanes,
  palette: Palette,
): void {
  const { scene, window, gutter } = frame;
  const scale = (frame.width - gutter) / (window.to - window.from);
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.save();
  context.beginPath();
  context.rect(gutter, AXIS, frame.width - gutter, frame.height - AXIS);
  context.clip();
  for (const row of rowsSeen(frame)) {
    const first = firstAfter(lanes, row, window.from);
    const y = AXIS + row * ROW - frame.scrolled;
    let budget = 400;
    for (
      let at = first;
      at < lanes.first[row + 1]! && lanes.start[at]! < window.to && budget > 0;
      at += 1, budget -= 1
    ) {
      const x0 = gutter + Math.max(0, (lanes.start[at]! - window.from) * scale);
      const x1 = Math.min(
        frame.width,
        gutter + (lanes.start[at]! + lanes.length[at]! - window.from) * scale,
      );
      if (frame.rows === 'threads')
        tick(context, frame, moveOf(scene, lanes, row, at), x0, y);
      if (x1 - x0 < 22) continue;
      const key = lanes.colour[at]!;
      const text = fitted(
        context,
        frame.rows === 'cpus' ? scene.threadName(key) : `CPU ${key}`,
        x1 - x0 - 8,
      );
      context.fillStyle = inkOn(palette.css(key));
      context.fillText(text, x0 + 5, y + ROW / 2);
    }
  }
  context.restore();
}

/** A thread came from another CPU: a short stroke within the core, a long one with a foot beyond it. */
function tick(
  context: CanvasRenderingContext2D,
  frame: Frame,
  move: 'smt' | 'core' | null,
  x: number,
  y: number,
): void {
  if (!move) return;
  context.fillStyle = frame.theme.text;
  if (move === 'smt') {
    context.fillRect(x - 0.5, y + 2, 1, 5);
    return;
  }
  context.fillRect(x - 0.5, y, 1.5, ROW - 1);
  context.fillRect(x - 2.5, y, 5, 2);
}

/** Text cut to a width; nothing where not even three letters fit. */
function fitted(
  context: CanvasRenderingContext2D,
  text: string,
  width: number,
): string {
  if (context.measureText(text).width <= width) return text;
  const letters =
    Math.floor(
      (width / Math.max(1, context.measureText(text).width)) * text.length,
    ) - 1;
  return letters < 3 ? '' : `${text.slice(0, letters)}…`;
}

function axis(context: CanvasRenderingContext2D, frame: Frame): void {
  const { window, theme, gutter, width } = frame;
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'middle';
  const scale = (width - gutter) / (window.to - window.from);
  const steps = ticks(
    window.from,
    window.to,
    Math.max(2, (width - gutter) / 110),
  );
  // The step decides the digits: two ticks never read the same.
  const digits = Math.min(
    12,
    Math.max(
      3,
      1 +
        Math.ceil(
          Math.log10(
            window.to / Math.max(1, (steps[1] ?? window.to) - (steps[0] ?? 0)),
          ),
        ),
    ),
  );
  for (const time of steps) {
    const x = gutter + (time - window.from) * scale;
    context.fillStyle = theme.line;
    context.fillRect(x, AXIS - 5, 1, frame.height - AXIS + 5);
    context.fillStyle = theme.muted;
    if (x + 60 < width)
      context.fillText(seconds(time * 1e-9, digits), x + 3, AXIS / 2);
  }
}

function labels(context: CanvasRenderingContext2D, frame: Frame): void {
  const { theme, gutter } = frame;
  context.save();
  context.beginPath();
  context.rect(0, AXIS, gutter, frame.height - AXIS);
  context.clip();
  for (const row of rowsSeen(frame)) {
    const y = AXIS + row * ROW - frame.scrolled + ROW / 2;
    context.fillStyle = frame.cursor?.row === row ? theme.text : theme.muted;
    context.fillText(
      fitted(context, rowName(frame.scene, frame.rows, row), gutter - 8),
      4,
      y,
    );
  }
  context.restore();
}

/** The cursor and what is being selected. */
function marks(context: CanvasRenderingContext2D, frame: Frame): void {
  const { window, gutter, theme, cursor, selection } = frame;
  const scale = (frame.width - gutter) / (window.to - window.from);
  if (selection) {
    const x0 = gutter + (selection.from - window.from) * scale;
    context.globalAlpha = 0.25;
    context.fillStyle = theme.text;
    context.fillRect(
      x0,
      AXIS,
      (selection.to - selection.from) * scale,
      frame.height - AXIS,
    );
    context.globalAlpha = 1;
  }
  if (!cursor) return;
  const x = gutter + (cursor.time - window.from) * scale;
  const y = AXIS + cursor.row * ROW - frame.scrolled;
  context.strokeStyle = theme.text;
  context.lineWidth = 1;
  context.strokeRect(gutter + 0.5, y + 0.5, frame.width - gutter - 1, ROW - 1);
  if (x >= gutter && x <= frame.width) {
    context.fillStyle = theme.text;
    context.fillRect(x, AXIS - 4, 1, frame.height - AXIS + 4);
  }
}
