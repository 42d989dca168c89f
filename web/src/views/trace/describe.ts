// What a place of the timeline shows, in words.

import { visible } from '../../dom';
import { count, percent, seconds } from '../../format';
import { type Lanes, type Rows, firstAfter, sliceAt, Summer } from './lanes';
import { sharesAt, spansOfRow } from './others';
import { type Scene, type Window, moveOf, queuedOn, rowName } from './scene';

/** What a place of the timeline shows, as one sentence. */
export function describe(
  scene: Scene,
  rows: Rows,
  row: number,
  time: number,
): string {
  const where = `${rowName(scene, rows, row)} at ${moment(time)}`;
  const lanes = scene.lanes(rows);
  if (!lanes) return `${where}: ${spanWords(scene, row, time)}.`;
  const at = sliceAt(lanes, row, time);
  if (at === null)
    return `${where}: ${emptyWords(scene, rows, lanes, row, time)}.`;
  const slices = scene.slices!;
  const from = lanes.origin[at]!;
  const end = slices.ends[slices.end[from]!] ?? 'unreported';
  const who =
    rows === 'cpus'
      ? scene.threadName(slices.thread[from]!)
      : `on CPU ${slices.cpu[from]}`;
  return `${where}: ${who} from ${moment(lanes.start[at]!)} for ${seconds(lanes.length[at]! * 1e-9)}, then ${END_WORDS[end] ?? end}${movedWords(scene, rows, lanes, row, at)}.`;
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

/** A time with enough digits to find it again. */
export function moment(time: number): string {
  return seconds(time * 1e-9, 6);
}

function movedWords(
  scene: Scene,
  rows: Rows,
  lanes: Lanes,
  row: number,
  at: number,
): string {
  const move = rows === 'threads' ? moveOf(scene, lanes, row, at) : null;
  if (!move) return '';
  return `; it came from CPU ${lanes.colour[at - 1]}, ${move === 'smt' ? 'the same core' : 'another core'}`;
}

function emptyWords(
  scene: Scene,
  rows: Rows,
  lanes: Lanes,
  row: number,
  time: number,
): string {
  if (rows === 'cpus') {
    const shares = sharesAt(scene, spansOfRow(scene, row), time);
    return shares
      ? `no traced thread; of the ${seconds(scene.spans!.lengthNs * 1e-9)} around, other programs had ${percent(shares.others)}`
      : 'no traced thread';
  }
  const wait = waitAt(scene, scene.slices!.threads[scene.threads[row]!]!, time);
  if (wait !== null) {
    const waits = scene.waits!;
    const cause = waits.causes[waits.cause[wait]!] ?? 'unreported';
    return `queued on CPU ${waits.place[wait]} for ${seconds(waits.length[wait]! * 1e-9)}, ${CAUSE_WORDS[cause] ?? visible(cause)}`;
  }
  const next = firstAfter(lanes, row, time);
  if (next >= lanes.first[row + 1]!) return 'not on a CPU any more';
  return `not on a CPU; next from ${moment(lanes.start[next]!)}`;
}

/** A stretch of a row in words: busy, queued and migrations, if several slices share a pixel. */
export function stretchWords(
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
  } = new Summer(1, lanes.colours).sum(lanes, row, from, to);
  if (many[0]! < 2) return '';
  const queued =
    rows === 'cpus' && scene.waits
      ? `, ${queuedOn(scene, scene.cpus[row]!, (from + to) / 2)} queued`
      : '';
  return `These ${seconds((to - from) * 1e-9)}: ${count(many[0]!, 'slice')}, busy ${percent(share[0]!)}${queued}, ${count(arrivals[0]!, 'migration')}.`;
}

function waitAt(scene: Scene, thread: number, time: number): number | null {
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

function spanWords(scene: Scene, row: number, time: number): string {
  const spans = scene.spans;
  const cpu = spansOfRow(scene, row);
  if (!spans || !cpu) return 'unknown';
  const at = Math.floor(time / spans.lengthNs);
  const foreign = cpu.foreign?.[at];
  const others =
    foreign === undefined ? '' : `, with others ${percent(foreign)}`;
  return `busy with traced threads for ${percent(cpu.own?.[at] ?? 0)} of ${seconds(spans.lengthNs * 1e-9)}${others}`;
}
