// Profiles as trees and tables.

import { expect, test } from 'vitest';

import type { ChangeRecord, ProfileDiff, ProfileRecord } from '../../records';
import {
  layOutBoxes,
  invertFlame,
  changeTable,
  toFlame,
  diffToFlame,
  functionTable,
  describePausing,
  diffHeadline,
  searchFrames,
} from './shape';

const node = (
  fn: number,
  parent: number | null,
  cpu_s: number,
): {
  function: number;
  parent: number | null;
  samples: number;
  cpu_s: number;
} => ({ function: fn, parent, samples: 1, cpu_s });

/** main (1 s own) calls work (2 s own), which pauses for 4 s; irq has 1 s beside. */
const RECORD: ProfileRecord = {
  calls: {
    functions: [
      { name: 'main', kind: 'user' },
      { name: 'work', module: '/lib/libwork.so', kind: 'user' },
      { name: 'pause', kind: 'pause' },
      { name: 'irq', kind: 'kernel' },
    ],
    nodes: [node(0, null, 1), node(1, 0, 2), node(2, 1, 4), node(3, null, 1)],
  },
};

test('the time of callers includes their callees', () => {
  const tree = toFlame(RECORD)!;
  expect(tree.frames.map((frame) => frame.time)).toEqual([8, 7, 6, 4, 1]);
  expect(tree.deepest).toBe(3);
  expect(tree.frames[1]!.words).toContain(
    '87.5 % of all, 1.00 s in its own code',
  );
});

test('boxes lie within their callers, and a focused call fills the width', () => {
  const tree = toFlame(RECORD)!;
  const all = layOutBoxes(tree, 0, 0);
  for (const box of all.slice(1)) {
    const caller = all.find(
      (shown) => shown.frame === tree.frames[box.frame]!.parent,
    )!;
    expect(box.left).toBeGreaterThanOrEqual(caller.left - 1e-9);
    expect(box.left + box.width).toBeLessThanOrEqual(
      caller.left + caller.width + 1e-9,
    );
    expect(box.row).toBe(caller.row + 1);
  }
  const inside = layOutBoxes(tree, 2, 0);
  expect(inside.find((box) => box.frame === 2)).toMatchObject({
    left: 0,
    width: 1,
  });
  expect(inside.map((box) => box.frame).sort()).toEqual([0, 1, 2, 3]);
  expect(layOutBoxes(tree, 0, 0.2).some((box) => box.frame === 4)).toBe(false);
});

test('a search counts nested matches once', () => {
  const tree = toFlame(RECORD)!;
  expect(searchFrames(tree, 'LIBWORK')).toEqual({
    found: new Set([2]),
    share: 0.75,
  });
  expect(searchFrames(tree, 'pause').share).toBe(0.5);
  // "all" is no call, though "a" is in its name.
  expect(searchFrames(tree, 'a').share).toBe(0.875);
  expect(searchFrames(tree, ' ')).toEqual({ found: new Set(), share: 0 });
});

test('a tree with invalid parents is still drawn', () => {
  const calls = {
    functions: [{ name: 'x', kind: 'user' }],
    nodes: [node(0, 5, 1), node(9, 0, 1)],
  };
  expect(toFlame({ calls })!.frames.map((frame) => frame.parent)).toEqual([
    -1, 0, 1,
  ]);
  expect(toFlame({})).toBeNull();
});

test('inverted, a function has its own time in all calls', () => {
  // main (1 s) calls lock (2 s); work (0.5 s), called by main, calls it, too (4 s).
  const calls = {
    functions: ['main', 'lock', 'work'].map((name) => ({ name, kind: 'user' })),
    nodes: [node(0, null, 1), node(1, 0, 2), node(2, 0, 0.5), node(1, 2, 4)],
  };
  const { frames, deepest } = invertFlame(toFlame({ calls })!);
  const below = (at: number): [string, number][] =>
    frames[at]!.children.map((child) => [
      frames[child]!.name,
      frames[child]!.time,
    ]);
  expect(below(0)).toEqual([
    ['lock', 6],
    ['main', 1],
    ['work', 0.5],
  ]);
  const lock = frames.findIndex(({ name }) => name === 'lock');
  expect(below(lock)).toEqual([
    ['work', 4],
    ['main', 2],
  ]);
  expect(frames[lock]!.words).toBe('6.00 s, 80.0 % of all, in its own code');
  expect(frames[0]!.time).toBe(7.5);
  expect(deepest).toBe(3);
});

test('inverted, waiting in a spin hint has its waiting callers', () => {
  const { frames } = invertFlame(toFlame(RECORD)!);
  const path: string[] = [];
  for (let at = frames[0]!.children[0]; at; at = frames[at]!.children[0])
    path.push(`${frames[at]!.name} ${frames[at]!.time}`);
  expect(path).toEqual(['pause 4', 'work 4', 'main 4']);
});

const change = (
  before_s: number,
  after_s: number,
  half: number,
): ChangeRecord => ({
  before_samples: 1,
  after_samples: 1,
  before_s,
  after_s,
  delta_s: after_s - before_s,
  low_s: after_s - before_s - half,
  high_s: after_s - before_s + half,
  is_noise: Math.abs(after_s - before_s) < half,
});

const DIFF: ProfileDiff = {
  before: { id: 'a', title: 'a', host: 'h', units: 1, samples: 1, cpu_s: 1 },
  after: { id: 'b', title: 'b', host: 'h', units: 1, samples: 1, cpu_s: 1 },
  unit: 'run',
  total: change(10, 12, 0.5),
  waits: change(1, 2, 0.1),
  functions: [
    {
      name: 'f',
      kind: 'user',
      seen: 'came',
      own: change(0, 3, 0.2),
      total: change(0, 3, 0.2),
      waits: change(0, 0, 0),
    },
    {
      name: 'g',
      kind: 'user',
      seen: 'both',
      own: change(2, 1.9, 0.2),
      total: change(2, 1.9, 0.2),
      waits: change(0, 0, 0),
    },
  ],
  calls: [
    { name: 'main', kind: 'user', parent: null, total: change(10, 12, 0.5) },
    { name: 'f', kind: 'user', parent: 0, total: change(0, 3, 0.2) },
    { name: 'g', kind: 'user', parent: 0, total: change(10, 9.9, 0.2) },
    { name: 'h', kind: 'user', parent: 0, total: change(4, 1, 0.2) },
  ],
};

test('changes are classified by sign, and possible chance as flat', () => {
  const tree = diffToFlame(DIFF)!;
  expect(tree.frames.map((frame) => frame.kind)).toEqual([
    'up',
    'up',
    'up',
    'flat',
    'down',
  ]);
  for (const frame of tree.frames) {
    const inside = frame.children.reduce(
      (sum, child) => sum + tree.frames[child]!.time,
      0,
    );
    expect(inside).toBeLessThanOrEqual(frame.time + 1e-9);
  }
  const rows = changeTable(DIFF, 10)!.rows;
  expect(rows[0]![0]).toBe('all functions');
  expect(rows[1]!.slice(0, 3)).toEqual([
    'f (new)',
    '+3.00 s',
    '+2.80 s to +3.20 s',
  ]);
  expect(rows).toHaveLength(2);
  expect(changeTable(DIFF, 10, true)!.rows).toHaveLength(1);
});

test('pausing is described if it is known', () => {
  expect(describePausing(DIFF)).toBeNull();
  const shown = describePausing({
    ...DIFF,
    pausing: {
      before_pauses: 100,
      after_pauses: 50,
      by_more_s: -0.5,
      by_longer_s: 0.25,
    },
  });
  expect(shown).toContain(
    '−500 ms per run comes from fewer PAUSEs (100 before, 50.0 after) and +250 ms from longer ones',
  );
});

test('tables of missing fields are left out', () => {
  expect(functionTable({}, 10)).toBeNull();
});

test('a difference of two programs says so', () => {
  const own = { before_samples: 1, after_samples: 1 };
  const of = (a: string, b: string, module: string) =>
    diffHeadline({
      headline: 'Less.',
      before: { title: `profile ${a}` },
      after: { title: `profile ${b}` },
      functions: [{ name: 'f', kind: 'user', module, own }],
    });
  expect(of('./a', 'sh -c x', '/lib/libc.so.6')).toBe(
    'These are different programs: Less.',
  );
  expect(of('./a 1', 'new/a 2', '/lib/libc.so.6')).toBe('Less.');
  expect(of('./old', './new', '/x/old')).toBe('Less.');
});
