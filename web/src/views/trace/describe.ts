// Describes places of the timeline in words.

import { visible } from '../../dom';
import { count, percent, seconds } from '../../format';
import {
  type Lanes,
  type Rows,
  firstEndingAfter,
  findSlice,
  ColumnSums,
} from './lanes';
import { findShares, spansOfRow } from './others';
import {
  type Scene,
  type Window,
  classifyMove,
  countQueued,
  rowName,
} from './scene';

/** Describes a time in a row in one sentence. */
export function describePlace(
  scene: Scene,
  rows: Rows,
  row: number,
  time: number,
): string {
  const where = `${rowName(scene, rows, row)} at ${formatMoment(time)}`;
  const lanes = scene.lanes(rows);
  if (!lanes) return `${where}: ${describeSpan(scene, row, time)}.`;
  const at = findSlice(lanes, row, time);
  if (at === null)
    return `${where}: ${describeEmpty(scene, rows, lanes, row, time)}.`;
  const slices = scene.slices!;
  const from = lanes.origin[at]!;
  const end = slices.ends[slices.end[from]!] ?? 'unreported';
  const who =
    rows === 'cpus'
      ? scene.threadName(slices.thread[from]!)
      : `on CPU ${slices.cpu[from]}`;
  return `${where}: ${who} from ${formatMoment(lanes.start[at]!)} for ${seconds(lanes.length[at]! * 1e-9)}, then ${END_WORDS[end] ?? end}${describeMove(scene, rows, lanes, row, at)}.`;
}

const END_WORDS: Readonly<Record<string, string>> = {
  blocked: 'waiting for something',
  preempted: 'preempted',
  ended: 'ended',
  unreported: 'still there, or unknown',
};

export const CAUSE_WORDS: Readonly<Record<string, string>> = {
  scheduler: 'another allowed CPU idled',
  mask: 'only CPUs idled that its mask forbids',
  other_processes: 'another program ran there',
  own_threads: 'a thread of the same program ran there',
  starting: 'the idle CPU was waking up',
  throttled: 'a quota on CPU time was used up',
  scheduling_class: 'its scheduling class held it back',
  unreported: 'reason unknown',
};

/** Formats a time with enough digits to find it again. */
export function formatMoment(time: number): string {
  return seconds(time * 1e-9, 6);
}

function describeMove(
  scene: Scene,
  rows: Rows,
  lanes: Lanes,
  row: number,
  at: number,
): string {
  const move = rows === 'threads' ? classifyMove(scene, lanes, row, at) : null;
  if (!move) return '';
  return `; it came from CPU ${lanes.colour[at - 1]}, ${move === 'smt' ? 'the same core' : 'another core'}`;
}

function describeEmpty(
  scene: Scene,
  rows: Rows,
  lanes: Lanes,
  row: number,
  time: number,
): string {
  if (rows === 'cpus') {
    const shares = findShares(scene, spansOfRow(scene, row), time);
    return shares
      ? `no traced thread; of the ${seconds(scene.spans!.lengthNs * 1e-9)} around, other programs had ${percent(shares.others)}`
      : 'no traced thread';
  }
  const wait = findWait(
    scene,
    scene.slices!.threads[scene.threads[row]!]!,
    time,
  );
  if (wait !== null) {
    const waits = scene.waits!;
    const cause = waits.causes[waits.cause[wait]!] ?? 'unreported';
    return `queued on CPU ${waits.place[wait]} for ${seconds(waits.length[wait]! * 1e-9)}, ${CAUSE_WORDS[cause] ?? visible(cause)}`;
  }
  const next = firstEndingAfter(lanes, row, time);
  if (next >= lanes.first[row + 1]!) return 'not on a CPU any more';
  return `not on a CPU; next from ${formatMoment(lanes.start[next]!)}`;
}

/** Describes a part of a row in which several slices share a pixel: busy, queued, migrations; else
 * empty. */
export function describeStretch(
  scene: Scene,
  rows: Rows,
  row: number,
  { from, to }: Window,
): string {
  const lanes = scene.lanes(rows);
  if (!lanes) return '';
  const {
    share,
    count: many,
    arrivals,
  } = new ColumnSums(1, lanes.colours).sum(lanes, row, from, to);
  if (many[0]! < 2) return '';
  const queued =
    rows === 'cpus' && scene.waits
      ? `, ${countQueued(scene, scene.cpus[row]!, (from + to) / 2)} queued`
      : '';
  return `These ${seconds((to - from) * 1e-9)}: ${count(many[0]!, 'slice')}, busy ${percent(share[0]!)}${queued}, ${count(arrivals[0]!, 'migration')}.`;
}

function findWait(scene: Scene, thread: number, time: number): number | null {
  const waits = scene.waits;
  if (!waits) return null;
  const own = scene.waitsOf(thread);
  const at = own.find(
    (wait) =>
      waits.start[wait]! <= time &&
      time < waits.start[wait]! + waits.length[wait]!,
  );
  return at ?? null;
}

function describeSpan(scene: Scene, row: number, time: number): string {
  const spans = scene.spans;
  const cpu = spansOfRow(scene, row);
  if (!spans || !cpu) return 'unknown';
  const at = Math.floor(time / spans.lengthNs);
  const foreign = cpu.foreign?.[at];
  const others =
    foreign === undefined ? '' : `, with others ${percent(foreign)}`;
  return `busy with traced threads for ${percent(cpu.own?.[at] ?? 0)} of ${seconds(spans.lengthNs * 1e-9)}${others}`;
}
