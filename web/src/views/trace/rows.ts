// The rows of a frame, as pixels: how busy, who queues, who migrates, and single slices with
// borders if there is room for them.

import { type Frame, rowsSeen } from './frame';
import type { Columns, Lanes } from './lanes';
import { CAUSES, firstAfter, firstFrom, Summer } from './lanes';
import { type Palette, causeColour, mix } from './colours';
import { Depth, sumWaits } from './depth';
import { shareOfRest, sharesAt, spansOfRow } from './others';
import { type Raster, pixel } from './raster';
import { filterMap } from '../../lists';

/** A row shows single slices if it has at most one for this many pixels. */
const PIXELS_PER_SLICE = 3;
/** Columns of the whole trace are used if at least this many fall on a pixel. */
const BINS_PER_PIXEL = 2;
/** Narrower slices have no border. */
const MIN_BORDERED_WIDTH = 4;
/** Slices of marked threads that are summed by themselves at most; of more, what had most of a pixel says enough. */
const MAX_MARKED_SLICES = 150_000;

/** Position of the parts of a row, in device pixels from its upper edge. */
interface Band {
  queue: number;
  top: number;
  bottom: number;
  end: number;
}

function band(frame: Frame, ratio: number): Band {
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

/** Keeps what is costly to make from frame to frame. */
export class RowPainter {
  private summer: Summer | null = null;
  private readonly depth = new Depth();

  paint(raster: Raster, frame: Frame, palette: Palette, ratio: number): void {
    const { scene, window } = frame;
    raster.clear(pixel(frame.theme.background));
    const keys = scene.keys(frame.rows, frame.colourBy === 'cause');
    const lanes = scene.lanes(frame.rows);
    if (
      keys &&
      (this.summer?.width !== raster.width ||
        this.summer.colours !== keys.count)
    )
      this.summer = new Summer(raster.width, keys.count);
    const at = band(frame, ratio);
    for (const row of rowsSeen(frame)) {
      const y = (row * frame.row - frame.scrolled) * ratio;
      separate(raster, frame, row, y, ratio);
      if (!lanes || !keys) {
        spansOf(raster, frame, row, y + at.top, y + at.end);
        continue;
      }
      const columns = this.columns(frame, row, raster.width);
      const colourOf = hasOneHue(frame, lanes, row, raster.width)
        ? () => pixel(frame.theme.series[0]!)
        : (key: number) => palette.pixel(row, key);
      bars(raster, columns, colourOf, y, at);
      if (frame.rows === 'cpus') others(raster, columns, frame, row, y, at);
      arrivals(raster, columns, frame, y + at.bottom, y + at.end);
    }
    if (lanes && frame.rows === 'cpus')
      overlay(raster, frame, this.depth, palette, ratio, at);
    for (const row of lanes && keys ? rowsSeen(frame) : []) {
      const y = (row * frame.row - frame.scrolled) * ratio;
      drawBordered(raster, frame, lanes!, keys!.keys, palette, row, y, at);
    }
    if (frame.rows === 'threads') {
      waitsOf(raster, frame, ratio);
      return;
    }
    sharingOf(raster, frame, ratio, at);
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

/** A line between cores, or between rows. */
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

/** Are there more slices than eyes can distinguish? */
function isDense(
  lanes: Lanes,
  row: number,
  { from, to }: Frame['window'],
  width: number,
): boolean {
  const many = firstFrom(lanes, row, to) - firstAfter(lanes, row, from);
  return many > width / PIXELS_PER_SLICE;
}

/** Hues of threads that are too narrow to see would be noise: the row is then a share of time,
 * in one hue. */
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

/** Bars as high as the share of time in their column. */
function bars(
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

/** Other programs: hatched above the bars, as their share of what these leave. */
function others(
  raster: Raster,
  { share }: Columns,
  { scene, window, theme }: Frame,
  row: number,
  y: number,
  at: Band,
): void {
  const spans = spansOfRow(scene, row);
  if (!spans?.foreign?.length) return;
  const colour = pixel(theme.neutral);
  const most = at.bottom - at.top;
  const step = (window.to - window.from) / raster.width;
  for (let x = 0; x < raster.width; x += 1) {
    const shares = sharesAt(scene, spans, window.from + (x + 0.5) * step);
    if (!shares) continue;
    const bottom = y + at.bottom - share[x]! * most;
    const high = (1 - share[x]!) * shareOfRest(shares) * most;
    raster.hatch(x, x + 1, bottom - high, bottom, colour);
  }
}

/** Slices that have room: whole, with a border that separates neighbours. */
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
  const first = firstAfter(lanes, row, window.from);
  const last = firstFrom(lanes, row, window.to);
  if (isDense(lanes, row, window, raster.width)) return;
  const scale = raster.width / (window.to - window.from);
  const edge = pixel(theme.background);
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

/** How many of a column's slices began with a thread from another CPU: the more, the darker. */
function arrivals(
  raster: Raster,
  { arrivals: many, count }: Columns,
  { theme }: Frame,
  y0: number,
  y1: number,
): void {
  const shades = SHADES.map((share) =>
    pixel(mix(theme.background, theme.text, share)),
  );
  for (let x = 0; x < many.length; x += 1) {
    if (many[x] === 0) continue;
    const share = Math.min(1, many[x]! / Math.max(1, count[x]!));
    const shade = shades[Math.ceil(share * shades.length) - 1]!;
    raster.fill(x, x + 1, y0, y1, shade);
  }
}

const SHADES = [0.3, 0.5, 0.75, 1];

/** What marked threads have of each CPU, over what all have: one that ran shortly is not lost among the others. */
function overlay(
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
          first: firstAfter(lanes, own, window.from),
          last: firstFrom(lanes, own, window.to),
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
        ? thread * CAUSES + causes[lanes.origin[slice]!]!
        : thread;
      const x0 = Math.max(0, Math.floor((start - window.from) * scale));
      const x1 = Math.ceil((start + length - window.from) * scale);
      const line = row * raster.width;
      latest.fill(key + 1, line + x0, line + Math.min(raster.width, x1));
    }
  }
  depth.settle();
  const most = at.bottom - at.top;
  for (const row of rowsSeen(frame)) {
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

/** Threads that wait for the CPU: a bar from above; two and more fill it. */
function drawQueued(
  raster: Raster,
  frame: Frame,
  depth: Depth,
  ratio: number,
  at: Band,
): void {
  const colour = pixel(frame.theme.worse);
  const most = at.top - at.queue;
  for (const row of rowsSeen(frame)) {
    const y = (row * frame.row - frame.scrolled) * ratio + at.queue;
    for (let x = 0; x < raster.width; x += 1) {
      const waiting = depth.at(row, x);
      if (waiting < 0.01) continue;
      const high = Math.max(1, Math.min(1, waiting / 2) * most);
      raster.fill(x, x + 1, y, y + high, colour);
    }
  }
}

/** For a trace without slices: traced threads solid, others hatched above. */
function spansOf(
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
    raster.fill(x0, x1, middle, bottom, pixel(theme.series[0]!));
    raster.hatch(
      x0,
      x1,
      middle - (shown.foreign?.[at] ?? 0) * most,
      middle,
      pixel(theme.neutral),
    );
  });
}

/** Needless sharing: a hatched band below the CPUs of the core. */
function sharingOf(
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
  const colour = pixel(theme.text);
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
      // What falls on a pixel that is marked already changes nothing.
      if (row === undefined || x1 <= (drawn.get(row) ?? -1)) continue;
      drawn.set(row, Math.ceil(x1));
      const y = (row * frame.row - frame.scrolled) * ratio + at.bottom;
      raster.hatch(x0, x1, y - 3 * ratio, y, colour, 4);
    }
  }
}

/** Waits: hatched at half height, by their cause if colours show causes. */
function waitsOf(raster: Raster, frame: Frame, ratio: number): void {
  const { scene, window, theme } = frame;
  const { waits } = scene;
  if (!waits) return;
  const rowOf = new Map(
    scene.threads.map((place, row) => [scene.slices!.threads[place]!, row]),
  );
  const scale = raster.width / (window.to - window.from);
  const colours = waits.causes.map((_, cause) =>
    pixel(frame.colourBy === 'cause' ? causeColour(theme, cause) : theme.worse),
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
    // What falls on a pixel that is hatched already changes nothing.
    if (row === undefined || x1 <= drawn[row]!) continue;
    drawn[row] = Math.ceil(x1);
    const middle = ((row + 0.5) * frame.row - frame.scrolled) * ratio;
    if (middle < -high || middle > raster.height + high) continue;
    raster.hatch(
      (waits.start[at]! - window.from) * scale,
      x1,
      middle - high / 2,
      middle + high / 2,
      colours[waits.cause[at]!] ?? pixel(theme.worse),
      4,
    );
  }
}
