// Profiles as trees that can be drawn, and as tables.

import {
  count,
  digits,
  fixed,
  percent,
  seconds,
  wholeNumber,
} from '../../format';
import { finite } from '../../numbers';
import type {
  ChangeRecord,
  Maybe,
  ProfileDiff,
  ProfileRecord,
  SpotRecord,
} from '../../records';
import { type Table, numberColumns } from '../../table';

/** A call in a flame graph. */
export interface Frame {
  name: string;
  module: string;
  /** "user", "kernel", "pause", "left_out", "all"; in a difference "up", "down", "flat". */
  kind: string;
  parent: number;
  children: number[];
  /** Time of the call with its callees, seconds. */
  time: number;
  depth: number;
  /** Figures in words. */
  words: string;
}

/** A tree of calls; the first frame holds all others. */
export interface Flame {
  frames: Frame[];
  deepest: number;
}

export const KIND_WORDS: Readonly<Record<string, string>> = {
  user: 'the program',
  kernel: 'the kernel',
  pause: 'waiting in a spin hint',
  left_out: 'left out',
  broken: 'callers missing: broken stacks',
  all: 'all',
  up: 'more than before',
  down: 'less than before',
  flat: 'no change to speak of',
};

/** Changes below this share of all time are drawn as no change. */
const MAX_FLAT_SHARE = 0.005;

interface Call {
  name: string;
  module: string;
  kind: string;
  parent: number;
  time: number;
  words: string;
}

/** Builds the tree of calls, listed callers before callees, below one frame for all. */
function buildFlame(calls: readonly Call[], all: Omit<Call, 'parent'>): Flame {
  const frames: Frame[] = [{ ...all, parent: -1, children: [], depth: 0 }];
  let deepest = 0;
  calls.forEach((call, at) => {
    const parent = call.parent < at ? call.parent + 1 : 0;
    const depth = frames[parent]!.depth + 1;
    deepest = Math.max(deepest, depth);
    frames.push({ ...call, parent, children: [], depth });
    frames[parent]!.children.push(at + 1);
  });
  for (const frame of frames)
    frame.children.sort(
      (a, b) => frames[a]!.name.localeCompare(frames[b]!.name, 'en') || a - b,
    );
  return { frames, deepest };
}

export const timeOf = (amount: Maybe<{ cpu_s?: number | null }>): number =>
  amount?.cpu_s ?? 0;

const longerSide = (change: Maybe<ChangeRecord>): number =>
  Math.max(change?.before_s ?? 0, change?.after_s ?? 0);

/** The flame graph of a profile: time of callees is part of their callers'. */
export function toFlame(record: ProfileRecord): Flame | null {
  const calls = record.calls;
  const nodes = calls?.nodes ?? [];
  if (nodes.length === 0) return null;
  const times = nodes.map(timeOf);
  for (let at = nodes.length - 1; at >= 0; at -= 1) {
    const parent = nodes[at]!.parent ?? -1;
    if (parent >= 0 && parent < at) times[parent]! += times[at]!;
  }
  const whole = nodes.reduce((sum, node) => sum + timeOf(node), 0);
  const share = (time: number): string =>
    `${seconds(time)}, ${percent(time / whole)} of all`;
  const list = nodes.map((node, at): Call => {
    const called = calls?.functions?.[node.function ?? -1];
    const time = timeOf(node);
    const own =
      time > 0 && time < times[at]! ? `, ${seconds(time)} in its own code` : '';
    return {
      name: called?.name ?? '?',
      module: called?.module ?? '',
      kind: called?.kind ?? 'left_out',
      parent: node.parent ?? -1,
      time: times[at]!,
      words: share(times[at]!) + own,
    };
  });
  return buildFlame(list, {
    name: 'all',
    module: '',
    kind: 'all',
    time: whole,
    words: share(whole),
  });
}

/**
 * The same calls from the other end: below `all` each function, as wide as the time in its own code
 * wherever it was called; below it its callers. The longest is first.
 */
export function invertFlame(tree: Flame): Flame {
  const whole = Math.max(tree.frames[0]!.time, 1e-18);
  const calls: Call[] = [];
  const listed = new Map<string, number>();
  tree.frames.forEach((frame, at) => {
    const inside = frame.children.reduce(
      (sum, child) => sum + tree.frames[child]!.time,
      0,
    );
    const own = frame.time - inside;
    if (at === 0 || own <= 1e-9 * whole) return;
    let parent = -1;
    for (let up = at; up > 0; up = tree.frames[up]!.parent) {
      const { name, module, kind } = tree.frames[up]!;
      const key = JSON.stringify([parent, name, module, kind]);
      let index = listed.get(key);
      if (index === undefined) {
        index = calls.push({ name, module, kind, parent, time: 0, words: '' });
        listed.set(key, --index);
      }
      calls[index]!.time += own;
      parent = index;
    }
  });
  for (const call of calls) {
    const share = `${seconds(call.time)}, ${percent(call.time / whole)} of all`;
    const way = call.parent < 0 ? 'in its own code' : 'in calls from here';
    call.words = `${share}, ${way}`;
  }
  const inverted = buildFlame(calls, tree.frames[0]!);
  for (const { children } of inverted.frames)
    children.sort(
      (a, b) => inverted.frames[b]!.time - inverted.frames[a]!.time || a - b,
    );
  return inverted;
}

/** The program's file in a title such as "profile ./prog 8". */
const programOf = (title: Maybe<string>): string | undefined =>
  title?.split(' ')[1]?.split('/').at(-1);

/** The main result of a difference; of two programs, which share no function of their own, it is no
 * change of one. */
export function diffHeadline(diff: ProfileDiff): string {
  const [a, b] = [diff.before, diff.after].map((side) =>
    programOf(side?.title),
  );
  const isShared = (diff.functions ?? []).some(
    ({ kind, module, own }) =>
      kind === 'user' &&
      !/\/(lib|ld)[^/]*$/.test(module ?? '') &&
      own?.before_samples &&
      own.after_samples,
  );
  return `${a && b && a !== b && !isShared ? 'These are different programs: ' : ''}${diff.headline ?? ''}`;
}

/** The flame graph of a difference: calls are as wide as the longer of both times, coloured by the
 * change. */
export function diffToFlame(diff: ProfileDiff): Flame | null {
  const calls = diff.calls ?? [];
  if (calls.length === 0) return null;
  const whole = Math.max(longerSide(diff.total), 1e-12);
  const widths = calls.map((call) => longerSide(call.total));
  // The longer sides of callees can add up to more than the longer side of their caller.
  const inside = new Array<number>(calls.length).fill(0);
  for (let at = calls.length - 1; at >= 0; at -= 1) {
    widths[at] = Math.max(widths[at]!, inside[at]!);
    const parent = calls[at]!.parent ?? -1;
    if (parent >= 0 && parent < at) inside[parent]! += widths[at]!;
  }
  const list = calls.map((call, at): Call => ({
    name: call.name ?? '?',
    module: call.module ?? '',
    kind: classifyChange(call.total, whole),
    parent: call.parent ?? -1,
    time: widths[at]!,
    words: describeChange(call.total, diff.unit),
  }));
  const roots = list.reduce(
    (sum, call) => sum + (call.parent < 0 ? call.time : 0),
    0,
  );
  return buildFlame(list, {
    name: 'all',
    module: '',
    kind: classifyChange(diff.total, whole),
    time: Math.max(whole, roots),
    words: describeChange(diff.total, diff.unit),
  });
}

function classifyChange(change: Maybe<ChangeRecord>, whole: number): string {
  const delta = change?.delta_s ?? 0;
  if (change?.is_noise || Math.abs(delta) < MAX_FLAT_SHARE * whole)
    return 'flat';
  return delta > 0 ? 'up' : 'down';
}

/** Formats a time with its sign: "+12.3 ms". */
export function signedTime(time: Maybe<number>): string {
  if (!finite(time)) return '–';
  return `${time < 0 ? '−' : '+'}${seconds(Math.abs(time))}`;
}

export function describeChange(
  change: Maybe<ChangeRecord>,
  unit: Maybe<string>,
): string {
  if (!change) return 'unknown';
  const chance = change.is_noise ? ', which may be chance' : '';
  return `${signedTime(change.delta_s)} per ${unit} (${signedTime(change.low_s)} to ${signedTime(change.high_s)})${chance}; ${seconds(change.before_s)} before, ${seconds(change.after_s)} after`;
}

/** The box of a frame; left and width are shares of the graph's width. */
export interface Box {
  frame: number;
  left: number;
  width: number;
  row: number;
}

/** Boxes of a frame, which fills the width, its callers and its callees; those narrower than
 * `narrowest` are left out. */
export function layOutBoxes(
  tree: Flame,
  focus: number,
  narrowest: number,
): Box[] {
  const listed: Box[] = [];
  for (
    let at = tree.frames[focus]!.parent;
    at >= 0;
    at = tree.frames[at]!.parent
  )
    listed.push({ frame: at, left: 0, width: 1, row: tree.frames[at]!.depth });
  listed.reverse();
  const whole = Math.max(tree.frames[focus]!.time, 1e-18);
  const open: Box[] = [
    { frame: focus, left: 0, width: 1, row: tree.frames[focus]!.depth },
  ];
  for (let box = open.pop(); box; box = open.pop()) {
    listed.push(box);
    const frame = tree.frames[box.frame]!;
    let { left } = box;
    for (const child of frame.children) {
      const width = tree.frames[child]!.time / whole;
      if (width >= narrowest)
        open.push({ frame: child, left, width, row: box.row + 1 });
      left += width;
    }
  }
  return listed;
}

/** Frames whose name or module contains the text, and their share of all time; matches below a
 * match are counted once. */
export function searchFrames(
  tree: Flame,
  text: string,
): { found: Set<number>; share: number } {
  const words = text.trim().toLowerCase();
  const found = new Set<number>();
  if (!words) return { found, share: 0 };
  const isBelow = new Array<boolean>(tree.frames.length).fill(false);
  let time = 0;
  tree.frames.forEach((frame, at) => {
    const isMatch =
      at > 0 && `${frame.name} ${frame.module}`.toLowerCase().includes(words);
    const wasBelow = frame.parent >= 0 && isBelow[frame.parent]!;
    if (isMatch) found.add(at);
    if (isMatch && !wasBelow) time += frame.time;
    isBelow[at] = isMatch || wasBelow;
  });
  return { found, share: time / Math.max(tree.frames[0]!.time, 1e-18) };
}

/** File name of a path. */
export function fileName(path: string | null | undefined): string {
  return path ? path.slice(path.lastIndexOf('/') + 1) : '–';
}

export function functionTable(
  record: ProfileRecord,
  most: number,
): Table | null {
  const functions = record.functions ?? [];
  if (functions.length === 0) return null;
  const whole = Math.max(record.total?.cpu_s ?? 0, 1e-12);
  const left = record.functions_left_out;
  const more =
    functions.length > most ? `; the first ${most} of ${functions.length}` : '';
  const beyond = left?.count
    ? `; ${count(left.count, 'function')} with ${seconds(left.own?.cpu_s)} are not in the record`
    : '';
  return {
    caption: `Functions, the longest own time first${more}${beyond}`,
    columns: [
      'Function',
      ...numberColumns(
        'Own',
        '± (1 s.e.)',
        'Own share',
        'With what it called',
        'In spin hints',
        'Samples',
      ),
      'Module',
      'Where',
    ],
    rows: functions
      .slice(0, most)
      .map((row) => [
        row.name,
        seconds(row.own?.cpu_s),
        seconds(row.own_error_s),
        percent(timeOf(row.own) / whole),
        seconds(row.total?.cpu_s),
        seconds(row.waits?.cpu_s),
        wholeNumber(row.own?.samples),
        fileName(row.module),
        KIND_WORDS[row.kind ?? ''] ?? row.kind,
      ]),
  };
}

export function threadTable(record: ProfileRecord): Table | null {
  const threads = record.threads ?? [];
  if (threads.length === 0) return null;
  return {
    caption: 'Threads, the busiest first',
    columns: [
      'Thread',
      ...numberColumns('Sampled', 'In spin hints', 'CPU time', 'Samples'),
    ],
    rows: threads.map((row) => [
      (row.threads ?? 1) > 1
        ? `${row.name} (${row.threads})`
        : `${row.name} ${row.thread ?? ''}`.trim(),
      seconds(row.sampled?.cpu_s),
      seconds(row.waits?.cpu_s),
      seconds(row.cpu_s),
      wholeNumber(row.sampled?.samples),
    ]),
  };
}

const METHODS: Readonly<Record<string, string>> = {
  fp: 'frame pointers',
  dwarf: 'unwind tables',
};

/** The share of broken stacks, and how they were unwound; null without samples. */
export function describeStacks(record: ProfileRecord): string | null {
  const { stacks, total } = record;
  if (!stacks || !total?.samples) return null;
  const least = stacks.by === 'fp' ? 'at least ' : '';
  return `${least}${percent((stacks.broken?.samples ?? 0) / total.samples)}; by ${METHODS[stacks.by ?? ''] ?? stacks.by}, ${fixed(stacks.mean_frames, 1)} frames on average`;
}

/** The place of an instruction, in words. */
export function spotName(spot: SpotRecord): string {
  const offset =
    spot.offset === null || spot.offset === undefined
      ? ''
      : ` + 0x${spot.offset.toString(16)}`;
  return `${spot.function}${offset}${spot.source ? ` (${spot.source})` : ''}`;
}

/** Changes of own CPU time, that of all functions first; or those that may be chance. */
export function changeTable(
  diff: ProfileDiff,
  most: number,
  isChance = false,
): Table | null {
  const known = diff.functions ?? [];
  const functions = known.filter(
    ({ own }) => (own?.is_noise ?? false) === isChance,
  );
  if (functions.length === 0) return null;
  const left =
    Math.max(0, functions.length - most) +
    (isChance ? (diff.functions_left_out ?? 0) : 0);
  const changeCells = (
    change: Maybe<ChangeRecord>,
    waits: Maybe<ChangeRecord>,
  ): string[] => [
    signedTime(change?.delta_s),
    `${signedTime(change?.low_s)} to ${signedTime(change?.high_s)}`,
    seconds(change?.before_s),
    seconds(change?.after_s),
    waits?.delta_s ? signedTime(waits.delta_s) : '–',
  ];
  return {
    caption: `Own CPU time per ${diff.unit}, the largest change first${left ? `; ${count(left, 'function')} not shown` : ''}`,
    columns: [
      'Function',
      ...numberColumns(
        'Change',
        '95 % interval',
        'Before',
        'After',
        'Of it in spin hints',
      ),
      'Module',
    ],
    rows: [
      ...(isChance
        ? []
        : [['all functions', ...changeCells(diff.total, diff.waits), '']]),
      ...functions
        .slice(0, most)
        .map(({ name, seen, own, waits, module }) => [
          name +
            (seen === 'came' ? ' (new)' : seen === 'gone' ? ' (gone)' : ''),
          ...changeCells(own, waits),
          fileName(module),
        ]),
    ],
  };
}

/** A sentence: did waiting change by more PAUSEs or by longer ones? Null if that is not known. */
export function describePausing(diff: ProfileDiff): string | null {
  const { pausing } = diff;
  if (!pausing) return null;
  return `Of the change of waiting in spin hints, ${signedTime(pausing.by_more_s)} per ${diff.unit} comes from ${(pausing.after_pauses ?? 0) >= (pausing.before_pauses ?? 0) ? 'more' : 'fewer'} PAUSEs (${digits(pausing.before_pauses)} before, ${digits(pausing.after_pauses)} after) and ${signedTime(pausing.by_longer_s)} from ${(pausing.by_longer_s ?? 0) >= 0 ? 'longer' : 'shorter'} ones.`;
}
