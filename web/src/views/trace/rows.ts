// Draws the rows of a frame as pixels: how busy they are, queued threads, migrations, and single
// slices with borders if there is room for them.

import { type Frame, visibleRows } from './frame';
import type { Columns, Lanes } from './lanes';
import {
  CAUSE_KEYS,
  firstEndingAfter,
  firstStartingFrom,
  ColumnSums,
} from './lanes';
import { type Palette, causeColour, mixColours } from './colours';
import { Depth, sumWaits } from './depth';
import { shareOfRest, findShares, spansOfRow } from './others';
import { type Raster, toPixel } from './raster';
import { filterMap } from '../../lists';

/** A row shows single slices if they have at least this many pixels each, on average. */
const PIXELS_PER_SLICE = 3;
/** Sums over the whole trace are used if at least this many of their columns fall on a pixel. */
const BINS_PER_PIXEL = 2;
/** Narrower slices have no border, pixels. */
const MIN_BORDERED_WIDTH = 4;
/** If marked threads have more slices, they are not drawn apart: the colour of a pixel's main
 * thread is enough. */
const MAX_MARKED_SLICES = 150_000;

/** Edges of the parts of a row, in device pixels from its upper edge: queued threads, time,
 * migrations. */
interface Band {
  queue: number;
  top: number;
  bottom: number;
  end: number;
}

function layOutBand(frame: Frame, ratio: number): Band {
  const { row, scene } = frame;
  const isCpus = frame.rows === 'cpus';
  const queue = isCpus && scene.waits ? Math.max(2, Math.round(row * 0.18)) : 0;
  const arrivals = scene.slices ? Math.max(1, Math.floor(row * 0.12)) : 0;
  return {
    queue: ratio,
    top: (1 + queue) * ratio,
    bottom: (row - 1 - arrivals) * ratio,
    end: (row - 1) * ratio,
  };
}

/** Draws rows, and keeps what is costly to build between frames. */
export class RowPainter {
  /** Does a visible row distinguish threads by hue? */
  hasHues = true;
  private summer: ColumnSums | null = null;
  private readonly depth = new Depth();

  paint(raster: Raster, frame: Frame, palette: Palette, ratio: number): void {
    const { scene, window } = frame;
    raster.clear(toPixel(frame.theme.background));
    const keys = scene.keys(frame.rows, frame.colourBy === 'cause');
    const lanes = scene.lanes(frame.rows);
    if (
      keys &&
      (this.summer?.width !== raster.width ||
        this.summer.colours !== keys.count)
    )
      this.summer = new ColumnSums(raster.width, keys.count);
    const at = layOutBand(frame, ratio);
    this.hasHues = false;
    for (const row of visibleRows(frame)) {
      const y = (row * frame.row - frame.scrolled) * ratio;
      drawSeparator(raster, frame, row, y, ratio);
      if (!lanes || !keys) {
        drawSpans(raster, frame, row, y + at.top, y + at.end);
        continue;
      }
      const columns = this.columns(frame, row, raster.width);
      const isPlain = hasOneHue(frame, lanes, row, raster.width);
      this.hasHues ||= !isPlain;
      const colourOf = isPlain
        ? () => toPixel(frame.theme.series[0]!)
        : (key: number) => palette.pixel(row, key);
      drawBars(raster, columns, colourOf, y, at);
      if (frame.rows === 'cpus') drawOthers(raster, columns, frame, row, y, at);
      drawArrivals(raster, columns, frame, y + at.bottom, y + at.end);
    }
    if (lanes && frame.rows === 'cpus')
      drawMarked(raster, frame, this.depth, palette, ratio, at);
    for (const row of lanes && keys ? visibleRows(frame) : []) {
      const y = (row * frame.row - frame.scrolled) * ratio;
      drawBordered(raster, frame, lanes!, keys!.keys, palette, row, y, at);
    }
    if (frame.rows === 'threads') {
      drawWaits(raster, frame, ratio);
      return;
    }
    drawSharing(raster, frame, ratio, at);
    if (!scene.waits) return;
    sumWaits(this.depth, scene, scene.rowOf, raster.width, window);
    drawQueued(raster, frame, this.depth, ratio, at);
  }

  private columns(frame: Frame, row: number, width: number): Columns {
    const { scene, window, rows, colourBy } = frame;
    const byCause = colourBy === 'cause';
    const seen = (window.to - window.from) / scene.span;
    const isFine = ({ share }: Columns): boolean =>
      (share.length * seen) / width >= BINS_PER_PIXEL;
    const bins = scene.bins(rows, row, byCause).filter(isFine).at(-1);
    if (bins)
      return this.summer!.sumBins(bins, window.from, window.to, scene.span);
    const lanes = scene.lanes(rows)!;
    const { keys } = scene.keys(rows, byCause)!;
    return this.summer!.sum(lanes, row, window.from, window.to, keys);
  }
}

/** Draws a line above the first CPU of a core, or above each thread. */
function drawSeparator(
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
      toPixel(frame.theme.line),
    );
}

/** Are there too many slices to distinguish? */
function isDense(
  lanes: Lanes,
  row: number,
  { from, to }: Frame['window'],
  width: number,
): boolean {
  const many =
    firstStartingFrom(lanes, row, to) - firstEndingAfter(lanes, row, from);
  return many > width / PIXELS_PER_SLICE;
}

/** Are slices too narrow for hues of threads to mean anything? The row then shows shares of time in
 * one hue. */
const hasOneHue = (
  { rows, colourBy, marked, window }: Frame,
  lanes: Lanes,
  row: number,
  width: number,
): boolean =>
  rows === 'cpus' &&
  colourBy === 'thread' &&
  marked === null &&
  isDense(lanes, row, window, width);

/** Draws bars as high as the share of time in their column; equal neighbours are one bar. */
function drawBars(
  raster: Raster,
  { share, colour, count }: Columns,
  colourOf: (key: number) => number,
  y: number,
  at: Band,
): void {
  const bottom = y + at.bottom;
  const most = at.bottom - at.top;
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
    const high = Math.max(1, share[x]! * most);
    raster.fill(x, end, bottom - high, bottom, colourOf(colour[x]!));
    x = end;
  }
}

/** Hatches the time of other programs above the bars. */
function drawOthers(
  raster: Raster,
  { share }: Columns,
  { scene, window, theme }: Frame,
  row: number,
  y: number,
  at: Band,
): void {
  const spans = spansOfRow(scene, row);
  if (!spans?.foreign?.length) return;
  const colour = toPixel(theme.neutral);
  const most = at.bottom - at.top;
  const step = (window.to - window.from) / raster.width;
  for (let x = 0; x < raster.width; x += 1) {
    const shares = findShares(scene, spans, window.from + (x + 0.5) * step);
    if (!shares) continue;
    const bottom = y + at.bottom - share[x]! * most;
    const high = (1 - share[x]!) * shareOfRest(shares) * most;
    raster.hatch(x, x + 1, bottom - high, bottom, colour);
  }
}

/** Draws slices that have room with a border that separates neighbours. */
function drawBordered(
  raster: Raster,
  frame: Frame,
  lanes: Lanes,
  keys: Uint32Array,
  palette: Palette,
  row: number,
  y: number,
  at: Band,
): void {
  const { window, theme } = frame;
  const first = firstEndingAfter(lanes, row, window.from);
  const last = firstStartingFrom(lanes, row, window.to);
  if (isDense(lanes, row, window, raster.width)) return;
  const scale = raster.width / (window.to - window.from);
  const edge = toPixel(theme.background);
  for (let slice = first; slice < last; slice += 1) {
    const x0 = (lanes.start[slice]! - window.from) * scale;
    const x1 = x0 + lanes.length[slice]! * scale;
    if (x1 - x0 < MIN_BORDERED_WIDTH || x0 >= raster.width) continue;
    const [top, bottom] = [y + at.top, y + at.bottom];
    raster.fill(x0, x1, top, bottom, palette.pixel(row, keys[slice]!));
    raster.fill(x1 - 1, x1, top, bottom, edge);
    raster.frame(x0, x1 - 1, top, bottom, palette.edge(row, keys[slice]!));
  }
}

/** Draws the share of each column's slices whose thread came from another CPU: the more, the
 * darker. */
function drawArrivals(
  raster: Raster,
  { arrivals: many, count }: Columns,
  { theme }: Frame,
  y0: number,
  y1: number,
): void {
  const shades = ARRIVAL_SHADES.map((share) =>
    toPixel(mixColours(theme.background, theme.text, share)),
  );
  for (let x = 0; x < many.length; x += 1) {
    if (many[x] === 0) continue;
    const share = Math.min(1, many[x]! / Math.max(1, count[x]!));
    const shade = shades[Math.ceil(share * shades.length) - 1]!;
    raster.fill(x, x + 1, y0, y1, shade);
  }
}

const ARRIVAL_SHADES = [0.3, 0.5, 0.75, 1];

/** Draws the time of marked threads over that of all, so that short runs stay visible among others. */
function drawMarked(
  raster: Raster,
  frame: Frame,
  depth: Depth,
  palette: Palette,
  ratio: number,
  at: Band,
): void {
  const { scene, window, marked } = frame;
  const lanes = marked ? scene.lanes('threads') : null;
  const ranges = filterMap(scene.threads, (thread, own) =>
    lanes && marked?.has(thread)
      ? {
          thread,
          first: firstEndingAfter(lanes, own, window.from),
          last: firstStartingFrom(lanes, own, window.to),
        }
      : null,
  );
  const many = ranges.reduce((sum, { first, last }) => sum + last - first, 0);
  if (!lanes || many === 0 || many > MAX_MARKED_SLICES) return;
  depth.begin(scene.cpus.length, raster.width, window);
  const latest = new Uint32Array(scene.cpus.length * raster.width);
  const scale = raster.width / (window.to - window.from);
  const causes = frame.colourBy === 'cause' ? scene.causes() : null;
  for (const { thread, first, last } of ranges) {
    for (let slice = first; slice < last; slice += 1) {
      const row = scene.rowOf.get(lanes.colour[slice]!);
      if (row === undefined) continue;
      const [start, length] = [lanes.start[slice]!, lanes.length[slice]!];
      depth.add(row, start, length);
      const key = causes
        ? thread * CAUSE_KEYS + causes[lanes.origin[slice]!]!
        : thread;
      const x0 = Math.max(0, Math.floor((start - window.from) * scale));
      const x1 = Math.ceil((start + length - window.from) * scale);
      const line = row * raster.width;
      latest.fill(key + 1, line + x0, line + Math.min(raster.width, x1));
    }
  }
  depth.settle();
  const most = at.bottom - at.top;
  for (const row of visibleRows(frame)) {
    const bottom = (row * frame.row - frame.scrolled) * ratio + at.bottom;
    for (let x = 0; x < raster.width; x += 1) {
      const key = latest[row * raster.width + x]!;
      if (key === 0) continue;
      const high = Math.max(2, Math.min(1, depth.at(row, x)) * most);
      const colour = palette.pixel(row, key - 1);
      raster.fill(x, x + 1, bottom - high, bottom, colour);
    }
  }
}

/** Draws threads queued for a CPU as a bar from above; two and more fill it. */
function drawQueued(
  raster: Raster,
  frame: Frame,
  depth: Depth,
  ratio: number,
  at: Band,
): void {
  const colour = toPixel(frame.theme.worse);
  const most = at.top - at.queue;
  for (const row of visibleRows(frame)) {
    const y = (row * frame.row - frame.scrolled) * ratio + at.queue;
    for (let x = 0; x < raster.width; x += 1) {
      const waiting = depth.at(row, x);
      if (waiting < 0.01) continue;
      const high = Math.max(1, Math.min(1, waiting / 2) * most);
      raster.fill(x, x + 1, y, y + high, colour);
    }
  }
}

/** Draws a trace without slices: traced threads solid, others hatched above. */
function drawSpans(
  raster: Raster,
  frame: Frame,
  row: number,
  top: number,
  bottom: number,
): void {
  const { scene, window, theme } = frame;
  const shown = spansOfRow(scene, row);
  if (!scene.spans || !shown) return;
  const scale = raster.width / (window.to - window.from);
  const most = bottom - top;
  shown.own?.forEach((own, at) => {
    const x0 = (at * scene.spans!.lengthNs - window.from) * scale;
    const x1 = x0 + scene.spans!.lengthNs * scale;
    if (x1 <= 0 || x0 >= raster.width) return;
    const middle = bottom - own * most;
    raster.fill(x0, x1, middle, bottom, toPixel(theme.series[0]!));
    raster.hatch(
      x0,
      x1,
      middle - (shown.foreign?.[at] ?? 0) * most,
      middle,
      toPixel(theme.neutral),
    );
  });
}

/** Draws avoidable SMT sharing as a hatched band in the rows of the core's CPUs. */
function drawSharing(
  raster: Raster,
  frame: Frame,
  ratio: number,
  at: Band,
): void {
  const { scene, window, theme } = frame;
  const { sharing } = scene;
  if (!sharing) return;
  const { rowOf } = scene;
  const scale = raster.width / (window.to - window.from);
  const colour = toPixel(theme.text);
  const drawn = new Map<number, number>();
  for (
    let span = 0;
    span < sharing.count && sharing.start[span]! < window.to;
    span += 1
  ) {
    const end = sharing.start[span]! + sharing.length[span]!;
    if (end <= window.from) continue;
    const x0 = (sharing.start[span]! - window.from) * scale;
    const x1 = Math.max(x0 + 1, (end - window.from) * scale);
    for (const cpu of scene.cpusOf.get(sharing.place[span]!) ?? []) {
      const row = rowOf.get(cpu);
      // A span within marked pixels changes nothing.
      if (row === undefined || x1 <= (drawn.get(row) ?? -1)) continue;
      drawn.set(row, Math.ceil(x1));
      const y = (row * frame.row - frame.scrolled) * ratio + at.bottom;
      raster.hatch(x0, x1, y - 3 * ratio, y, colour, 4);
    }
  }
}

/** Draws waits in thread rows as hatching at half height, coloured by cause if colours show causes. */
function drawWaits(raster: Raster, frame: Frame, ratio: number): void {
  const { scene, window, theme } = frame;
  const { waits } = scene;
  if (!waits) return;
  const rowOf = new Map(
    scene.threads.map((place, row) => [scene.slices!.threads[place]!, row]),
  );
  const scale = raster.width / (window.to - window.from);
  const colours = waits.causes.map((_, cause) =>
    toPixel(
      frame.colourBy === 'cause' ? causeColour(theme, cause) : theme.worse,
    ),
  );
  const high = Math.max(4, Math.round(frame.row * 0.3)) * ratio;
  const drawn = new Float64Array(scene.threads.length);
  for (
    let at = scene.firstWait(window.from);
    at < waits.count && waits.start[at]! < window.to;
    at += 1
  ) {
    const x1 = (waits.start[at]! + waits.length[at]! - window.from) * scale;
    const row = rowOf.get(waits.who[at]!);
    // A wait within hatched pixels changes nothing.
    if (row === undefined || x1 <= drawn[row]!) continue;
    drawn[row] = Math.ceil(x1);
    const middle = ((row + 0.5) * frame.row - frame.scrolled) * ratio;
    if (middle < -high || middle > raster.height + high) continue;
    raster.hatch(
      (waits.start[at]! - window.from) * scale,
      x1,
      middle - high / 2,
      middle + high / 2,
      colours[waits.cause[at]!] ?? toPixel(theme.worse),
      4,
    );
  }
}
