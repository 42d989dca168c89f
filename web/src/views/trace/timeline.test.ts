// The timeline's logic: order, totals of a selection, the address, hits,
// arrows, colours, the queue. No canvas.

import { describe, expect, test, vi } from 'vitest';

import { toHead } from '../../table';
import { Bytes, fakeTrace, packSlices } from '../../../e2e/fake-trace';
import type { CpuSpans, TraceRecord } from '../../records';
import { DARK, LIGHT } from '../../theme';
import { type AddressState, fromParams, toParams } from './address';
import { findArrows } from './arrows';
import { type ColourBy, hashedColour, mixColours, Palette } from './colours';
import { Depth, sumWaits } from './depth';
import { describePlace } from './describe';
import { AXIS_HEIGHT, rowHeight } from './frame';
import { legendEntries } from './key';
import { ColumnSums } from './lanes';
import { computeLoad } from './minimap';
import { findWaitCauses, previousCpus, sortByTime } from './order';
import { knowsOthers, shareOfRest } from './others';
import { rowAt, timeAtShare } from './pointer';
import { toPixel } from './raster';
import { type Scene, buildScene, findThreads } from './scene';
import { finish } from './steps';
import {
  type Handle,
  type State,
  findMarked,
  followNextFound,
  handleKey,
  makeSelection,
} from './state';
import { sumTotals, totalsTable } from './totals';

// Themes ask the browser what the system prefers.
vi.hoisted(() => {
  const query = { matches: false, addEventListener: () => undefined };
  Object.assign(globalThis, { matchMedia: () => query });
});

interface Queued {
  thread: number;
  cpu: number;
  start: number;
  length: number;
  cause: number;
}

function packed(waits: readonly Queued[]): Record<string, unknown> {
  const threads = [...new Set(waits.map((wait) => wait.thread))];
  const bytes = new Bytes();
  let before = 0;
  for (const wait of waits) {
    bytes.varint(wait.start - before);
    bytes.varint(wait.length);
    bytes.varint(wait.cpu);
    bytes.varint(threads.indexOf(wait.thread) * 8 + wait.cause);
    before = wait.start;
  }
  return {
    form: 'varint/1',
    count: waits.length,
    shortest_ns: 10,
    threads,
    causes: ['scheduler', 'mask', 'other_processes'],
    bytes: bytes.base64(),
  };
}

/** Thread 7 runs on CPU 0, is woken onto CPU 0 and runs on 1, is preempted and runs on 2; thread 9
 * on CPU 1 between. */
const TRACE = {
  elapsed_s: 100e-6,
  cores: [{ core: 0, cpus: '0-1' }],
  cpus: [0, 1, 2].map((cpu) => ({ cpu })),
  threads: [
    { thread: 9, name: 'render' },
    { thread: 7, name: 'worker seven' },
  ],
  timeline: {
    packed: packSlices([
      [7, 0, 0, 20_000],
      [9, 1, 5_000, 30_000],
      [7, 1, 40_000, 10_000, 'preempted'],
      [7, 2, 60_000, 10_000, 'ended'],
    ]),
    waits: packed([
      { thread: 7, cpu: 0, start: 30_000, length: 10_000, cause: 2 },
      { thread: 7, cpu: 2, start: 50_000, length: 10_000, cause: 0 },
    ]),
  },
} as unknown as TraceRecord;

const scene = buildScene(TRACE);
const seven = scene.placeOf.get(7)!;
const nine = scene.placeOf.get(9)!;

describe('the order of time', () => {
  test('contains every slice of all CPUs once', () => {
    for (const cpus of [2, 6, 14]) {
      const made = { slices: 2_000, cpus, threads: 9 };
      const { slices } = buildScene(fakeTrace(made) as TraceRecord);
      const order = finish(sortByTime(slices!));
      expect(new Set(order).size).toBe(2_000);
      for (let at = 1; at < order.length; at += 1)
        expect(slices!.start[order[at]!]!).toBeGreaterThanOrEqual(
          slices!.start[order[at - 1]!]!,
        );
    }
  });

  test('yields the CPU before each slice and the wait that it ended', () => {
    const slices = scene.slices!;
    const order = finish(sortByTime(slices));
    const byStart = (list: ArrayLike<number>): number[] =>
      [...order].map((at) => list[at]!);
    expect(byStart(finish(previousCpus(slices, order)))).toEqual([
      -1, -1, 0, 1,
    ]);
    expect(byStart(finish(findWaitCauses(slices, order, scene.waits)))).toEqual(
      [0, 0, 3, 1],
    );
  });
});

describe('a selection', () => {
  test('has the time of each thread within its ends', () => {
    const totals = sumTotals(scene, { from: 10_000, to: 45_000 });
    expect(totals.map((row) => row.thread)).toEqual([nine, seven]);
    expect(totals[0]!.running).toBeCloseTo(25_000, 3);
    expect(totals[1]!.running).toBeCloseTo(15_000, 3);
    expect(totals[1]!.waiting[2]).toBeCloseTo(10_000, 3);
    expect(totals[1]!.waiting[0]).toBe(0);
    expect(totals.map((row) => row.migrations)).toEqual([0, 1]);
  });

  test('has totals that add up over its parts, each migration once', () => {
    const made = buildScene(
      fakeTrace({ slices: 4_000, cpus: 4, threads: 7 }) as TraceRecord,
    );
    const sum = (from: number, to: number): number[] =>
      sumTotals(made, { from, to }).reduce(
        ([running, waiting, moves], row) => [
          running! + row.running,
          waiting! + row.waiting.reduce((all, ns) => all + ns, 0),
          moves! + row.migrations,
        ],
        [0, 0, 0],
      );
    const cut = made.span / 3;
    const whole = sum(0, made.span);
    const [left, right] = [sum(0, cut), sum(cut, made.span)];
    whole.forEach((value, at) =>
      expect(left[at]! + right[at]!).toBeCloseTo(value, 1),
    );
    expect(whole[2]).toBeGreaterThan(1_000);
  });

  test('has a table that tells which waits it counts', () => {
    const table = totalsTable(scene, { from: 0, to: 100_000 });
    expect(table.caption).toContain('2 threads; waits of 10.0 ns and more');
    const names = table.columns.map((column) => toHead(column).name);
    expect(names.filter((name) => name.startsWith('Waiting:'))).toHaveLength(2);
    const row = table.rows.find((cells) => cells[0]!.text.endsWith('7'))!;
    expect(row.map((cell) => cell.text)).toEqual([
      'worker seven 7',
      '40.0 µs',
      '40.0 %',
      '20.0 µs',
      '10.0 µs',
      '10.0 µs',
      '2',
    ]);
  });

  test('in a trace without slices has the shares of its CPUs', () => {
    const coarse = buildScene({
      elapsed_s: 4e-3,
      cpus: [{ cpu: 0 }],
      timeline: {
        span_s: 1e-3,
        spans: [{ cpu: 0, own: [1, 0.5, 0, 0], foreign: [] }],
      },
    });
    const { rows } = totalsTable(coarse, { from: 0.5e6, to: 2e6 });
    expect(rows[0]!.map((cell) => cell.text)).toEqual([
      'CPU 0',
      '1.00 ms',
      '–',
    ]);
  });

  test('goes from the earlier to the later end', () => {
    expect(makeSelection(5, 2)).toEqual({ from: 2, to: 5 });
    expect(makeSelection(5, 5)).toBeNull();
  });
});

describe('the address', () => {
  const span = 2e9;
  const atFirst = fromParams(new URLSearchParams(), span);

  test('leaves out defaults', () => {
    expect(toParams(atFirst, span).size).toBe(0);
    expect(atFirst.window).toEqual({ from: 0, to: span });
  });

  test('restores the state', () => {
    const shown: AddressState = {
      window: { from: 12_345_678, to: 1_500_000_001 },
      rows: 'threads',
      colourBy: 'cause',
      thread: 4711,
      find: 'work & <b>',
      selection: { from: 20_000_000, to: 30_000_000 },
    };
    const text = toParams(shown, span).toString();
    expect(text).toContain('from=0.012345678&to=1.500000001&thread=4711');
    expect(fromParams(new URLSearchParams(text), span)).toEqual(shown);
  });

  test.each([
    'from=a&to=b',
    'from=1&to=1',
    'from=1.5&to=1',
    'from=-1&to=1e3',
    'from=3&to=4',
    'thread=x&rows=cores&colour=red&selected=1',
  ])('%s is taken for nothing', (text) => {
    expect(fromParams(new URLSearchParams(text), span)).toEqual(atFirst);
  });

  test('stays within the trace', () => {
    const { window } = fromParams(new URLSearchParams('from=1.5&to=9'), span);
    expect(window).toEqual({ from: 0, to: span });
  });
});

describe('the pointer', () => {
  test('finds the scrolled row below the axis, and only existing ones', () => {
    expect(rowAt(AXIS_HEIGHT + 1, 0, 20, 4)).toBe(0);
    expect(rowAt(AXIS_HEIGHT + 19.9, 0, 20, 4)).toBe(0);
    expect(rowAt(AXIS_HEIGHT + 20, 0, 20, 4)).toBe(1);
    expect(rowAt(AXIS_HEIGHT + 5, 35, 20, 4)).toBe(2);
    expect(rowAt(2, 0, 20, 4)).toBe(0);
    expect(rowAt(900, 0, 20, 4)).toBe(3);
  });

  test('finds a time within the window', () => {
    expect(timeAtShare({ from: 100, to: 300 }, 0.25)).toBe(150);
    expect(timeAtShare({ from: 100, to: 300 }, -1)).toBe(100);
    expect(timeAtShare({ from: 100, to: 300 }, 2)).toBe(300);
  });

  test('finds rows that fill the height within readable limits', () => {
    expect(rowHeight(64, 756)).toBe(13);
    expect(rowHeight(30, 562)).toBe(18);
    expect(rowHeight(2, 562)).toBe(40);
    expect(rowHeight(0, 562)).toBe(40);
  });
});

describe('arrows of a thread', () => {
  const whole = { from: 0, to: 100_000 };

  test('are its migrations and wake-ups, without preemptions', () => {
    const arrows = findArrows(scene, seven, whole)!.map((arrow) => [
      arrow.kind,
      arrow.from.cpu,
      Math.round(arrow.from.time),
      arrow.to.cpu,
      Math.round(arrow.to.time),
    ]);
    expect(arrows).toEqual([
      ['migration', 0, 20_000, 1, 40_000],
      ['migration', 1, 50_000, 2, 60_000],
      ['wakeup', 0, 30_000, 1, 40_000],
    ]);
    expect(findArrows(scene, nine, whole)).toEqual([]);
  });

  test('are those that touch the window', () => {
    const kinds = (from: number, to: number): string[] =>
      findArrows(scene, seven, { from, to })!.map((arrow) => arrow.kind);
    expect(kinds(21_000, 25_000)).toEqual(['migration']);
    expect(kinds(70_000, 90_000)).toEqual([]);
  });

  test('are null if there are too many', () => {
    const made = buildScene(
      fakeTrace({ slices: 5_000, cpus: 8, threads: 2 }) as TraceRecord,
    );
    const { span } = made;
    expect(findArrows(made, 0, { from: 0, to: span })).toBeNull();
    expect(
      findArrows(made, 0, { from: 0, to: span / 50 })!.length,
    ).toBeGreaterThan(5);
  });
});

describe('other programs', () => {
  const shared = (spans: CpuSpans[]): Scene =>
    buildScene({
      ...TRACE,
      timeline: { ...TRACE.timeline, span_s: 50e-6, spans },
    });

  test('have their share of the time that traced threads leave', () => {
    expect(shareOfRest({ own: 0.5, others: 0.25 })).toBe(0.5);
    expect(shareOfRest({ own: 0, others: 0 })).toBe(0);
    // Rounded shares can add up to more than the span.
    expect(shareOfRest({ own: 0.999, others: 0.002 })).toBe(1);
    expect(shareOfRest({ own: 1, others: 0 })).toBe(0);
  });

  test('are described where no traced thread ran, if they are known', () => {
    const known = shared([{ cpu: 0, own: [0.4, 0], foreign: [0.6, 0.25] }]);
    expect(describePlace(known, 'cpus', 0, 70_000)).toBe(
      'CPU 0 · core 0 at 70.0000 µs: no traced thread; of the 50.0 µs around, other programs had 25.0 %.',
    );
    expect(describePlace(known, 'cpus', 1, 39_000)).toMatch(
      /: no traced thread\.$/,
    );
    expect(knowsOthers(known)).toBe(true);
    const unknown = shared([{ cpu: 0, own: [0.4, 0], foreign: [] }]);
    expect(describePlace(unknown, 'cpus', 0, 70_000)).toMatch(
      /: no traced thread\.$/,
    );
    expect(knowsOthers(unknown)).toBe(false);
  });
});

describe('highlighted threads', () => {
  test('are found by all words of name or number', () => {
    expect(findThreads(scene, 'SEVEN worker')).toEqual([seven]);
    expect(findThreads(scene, '9')).toEqual([nine]);
    expect(findThreads(scene, ' ')).toEqual([]);
  });

  test('are the found and the followed ones, or all if none is', () => {
    expect(findMarked(scene, { thread: null, find: '' })).toBeNull();
    expect(findMarked(scene, { thread: 12345, find: '' })).toBeNull();
    expect(
      [...findMarked(scene, { thread: 7, find: 'render' })!].sort(),
    ).toEqual([seven, nine].sort());
    expect(findMarked(scene, { thread: null, find: 'none' })!.size).toBe(0);
  });

  test('have their colour, others go into the background', () => {
    const marked = new Set([seven]);
    const palette = new Palette(scene, 'cpus', 'thread', LIGHT, marked);
    expect(palette.pixel(0, seven)).toBe(toPixel(hashedColour(7, false)));
    expect(palette.pixel(0, nine)).toBe(
      toPixel(mixColours(hashedColour(9, false), LIGHT.background, 0.82)),
    );
  });

  test('are named in the legend, the busiest first, where rows do not name them', () => {
    const legend = (rows: 'cpus' | 'threads', by: ColourBy | null) =>
      legendEntries(scene, { rows, colourBy: by }, LIGHT);
    expect(legend('cpus', null)).toEqual([
      [hashedColour(9, false), 'render 9'],
      [hashedColour(7, false), 'worker seven 7'],
    ]);
    expect(legend('threads', null)).toEqual(
      [0, 1, 2].map((cpu) => [hashedColour(cpu, false), `CPU ${cpu}`]),
    );
    expect(legend('threads', 'thread')).toEqual([]);
    expect(legend('cpus', 'cpu')).toEqual([]);
    expect(legend('cpus', 'cause').map(([, name]) => name)).toContain(
      'no wait before it is kept',
    );
  });

  test('have many colours that are visible on the background', () => {
    for (const theme of [LIGHT, DARK]) {
      const all = Array.from({ length: 80 }, (_, at) =>
        hashedColour(1000 + at, theme.isDark),
      );
      expect(new Set(all).size).toBeGreaterThan(70);
      const background = luminance(theme.background);
      for (const colour of all)
        expect(contrast(luminance(colour), background)).toBeGreaterThan(2.5);
    }
  });
});

function luminance(colour: string): number {
  const value = Number.parseInt(colour.slice(1), 16);
  const linear = (byte: number): number => ((byte & 255) / 255) ** 2.2;
  return (
    0.2126 * linear(value >> 16) +
    0.7152 * linear(value >> 8) +
    0.0722 * linear(value)
  );
}

const contrast = (a: number, b: number): number =>
  (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);

describe('keys', () => {
  const handleOf = (): Handle => {
    const state: State = {
      ...fromParams(new URLSearchParams(), scene.span),
      cursor: { row: 0, time: 10_000 },
      anchor: null,
    };
    const nothing = (): void => undefined;
    return {
      scene,
      state,
      canvas: null as never,
      scroller: null as never,
      row: () => 20,
      refresh: nothing,
      point: nothing,
      select: nothing,
      layout: nothing,
      sync: nothing,
    };
  };

  test('select a span, zoom to it and clear it', () => {
    const handle = handleOf();
    for (let step = 0; step < 5; step += 1)
      handleKey(handle, 'ArrowRight', true);
    expect(handle.state.selection).toEqual({ from: 10_000, to: 20_000 });
    handleKey(handle, 'ArrowLeft', true);
    expect(handle.state.selection).toEqual({ from: 10_000, to: 18_000 });
    handleKey(handle, 'z', false);
    expect(handle.state.window.from).toBeCloseTo(10_000, 6);
    expect(handle.state.window.to).toBeCloseTo(18_000, 6);
    handleKey(handle, 'Escape', false);
    expect(handle.state.selection).toBeNull();
  });

  test('w, a, s and d move as in Perfetto', () => {
    const handle = handleOf();
    const { from, to } = handle.state.window;
    handleKey(handle, 'w', false);
    const { window } = handle.state;
    expect(window.to - window.from).toBeCloseTo((to - from) / 2, 6);
    handleKey(handle, 'd', false);
    expect(handle.state.window.from).toBeGreaterThan(window.from);
    handleKey(handle, 'a', false);
    expect(handle.state.window.from).toBeCloseTo(window.from, 6);
    handleKey(handle, 's', false);
    expect(handle.state.window).toEqual({ from, to });
  });

  test('follow the thread below the cursor, and stop following it', () => {
    const handle = handleOf();
    handleKey(handle, 'Enter', false);
    expect(handle.state.thread).toBe(7);
    handleKey(handle, 'Enter', false);
    expect(handle.state.thread).toBeNull();
    handle.state.find = 'render';
    followNextFound(handle);
    expect(handle.state.thread).toBe(9);
    expect(handle.state.cursor.row).toBe(1);
    handleKey(handle, 'Escape', false);
    expect([handle.state.thread, handle.state.find]).toEqual([null, '']);
  });
});

describe('columns', () => {
  test('from sums over the whole trace are close to those from slices', () => {
    const made = buildScene(
      fakeTrace({ slices: 60_000, cpus: 4, threads: 9 }) as TraceRecord,
    );
    const lanes = made.lanes('cpus')!;
    const [bins] = made.bins('cpus', 0, false);
    const exact = new ColumnSums(500, lanes.colours);
    const near = new ColumnSums(500, lanes.colours);
    const { span } = made;
    exact.sum(lanes, 0, 0, span);
    near.sumBins(bins!, 0, span, span);
    const total = (list: ArrayLike<number>): number =>
      Array.from(list).reduce((sum, value) => sum + value, 0);
    expect(total(near.columns.share) / total(exact.columns.share)).toBeCloseTo(
      1,
      2,
    );
    expect(total(near.columns.arrivals)).toBe(total(exact.columns.arrivals));
    near.columns.share.forEach((share, x) =>
      expect(Math.abs(share - exact.columns.share[x]!)).toBeLessThan(0.1),
    );
  });

  test('of the queue are the mean number of waits', () => {
    const depth = new Depth();
    const rows = new Map([0, 1, 2].map((cpu) => [cpu, cpu]));
    sumWaits(depth, scene, rows, 10, { from: 0, to: 100_000 });
    expect(depth.at(0, 3)).toBeCloseTo(1, 5);
    expect(depth.at(0, 4)).toBeCloseTo(0, 5);
    expect(depth.at(2, 5)).toBeCloseTo(1, 5);
    sumWaits(depth, scene, rows, 4, { from: 0, to: 100_000 });
    expect(depth.at(0, 1)).toBeCloseTo(0.4, 5);
    expect(depth.at(2, 2)).toBeCloseTo(0.4, 5);
  });

  test('of spans beyond the window are cut, and rows are separate', () => {
    const depth = new Depth();
    depth.begin(2, 4, { from: 100, to: 200 });
    depth.add(0, 50, 100);
    depth.add(0, 180, 100);
    depth.add(0, 10, 20);
    depth.add(1, 100, 25);
    depth.settle();
    const row = (at: number): number[] =>
      [0, 1, 2, 3].map((x) => Number(depth.at(at, x).toFixed(4)));
    expect(row(0)).toEqual([1, 1, 0, 0.8]);
    expect(row(1)).toEqual([1, 0, 0, 0]);
  });

  test('of the whole trace sum over its CPUs', () => {
    const { busy, queued } = computeLoad(scene, 10);
    expect(busy[0]).toBeCloseTo(1.5 / 3, 5);
    expect(busy[4]).toBeCloseTo(1 / 3, 5);
    expect(busy[9]).toBe(0);
    expect(queued[3]).toBeCloseTo(1 / 3, 5);
  });
});
