// The path of a thread: arrows between CPUs for its migrations, and for its wake-ups from the CPU
// on which it was queued. Records have neither the waker nor wake-ups after which the thread waited
// less than the shortest recorded wait.

import { type Lanes, firstEndingAfter } from './lanes';
import type { Scene, Window } from './scene';

export interface Arrow {
  kind: 'migration' | 'wakeup';
  from: { cpu: number; time: number };
  to: { cpu: number; time: number };
}

/** Times that went through seconds are exact to this, ns. */
const ROUNDING_NS = 2;
/** More arrows cannot be distinguished: the window is too wide. */
const MAX_ARROWS = 1_500;

/** Arrows of a thread that touch a window; null if there are too many. */
export function findArrows(
  scene: Scene,
  thread: number,
  window: Window,
): Arrow[] | null {
  const lanes = scene.lanes('threads');
  const row = scene.threads.indexOf(thread);
  if (!lanes || row < 0) return [];
  const arrows = [
    ...findMigrations(lanes, row, window),
    ...findWakeups(scene, lanes, row, window),
  ];
  return arrows.length > MAX_ARROWS ? null : arrows;
}

const endOf = (lanes: Lanes, at: number): number =>
  lanes.start[at]! + lanes.length[at]!;

function findMigrations(lanes: Lanes, row: number, window: Window): Arrow[] {
  const found: Arrow[] = [];
  const last = lanes.first[row + 1]!;
  const first = firstEndingAfter(lanes, row, window.from);
  for (let at = Math.max(first, lanes.first[row]! + 1); at < last; at += 1) {
    const left = endOf(lanes, at - 1);
    if (left > window.to || found.length > MAX_ARROWS) break;
    if (lanes.moved[at])
      found.push({
        kind: 'migration',
        from: { cpu: lanes.colour[at - 1]!, time: left },
        to: { cpu: lanes.colour[at]!, time: lanes.start[at]! },
      });
  }
  return found;
}

function findWakeups(
  scene: Scene,
  lanes: Lanes,
  row: number,
  window: Window,
): Arrow[] {
  const found: Arrow[] = [];
  const { slices, waits } = scene;
  if (!slices || !waits) return found;
  for (const wait of scene.waitsOf(slices.threads[scene.threads[row]!]!)) {
    const start = waits.start[wait]!;
    const end = start + waits.length[wait]!;
    if (start > window.to || found.length > MAX_ARROWS) break;
    const next = firstEndingAfter(lanes, row, end);
    if (end < window.from || next >= lanes.first[row + 1]!) continue;
    const isFollowed = Math.abs(lanes.start[next]! - end) <= ROUNDING_NS;
    // A thread queued since it left its CPU was preempted, not woken.
    const isPreempted =
      next > lanes.first[row]! && start - endOf(lanes, next - 1) <= ROUNDING_NS;
    if (isFollowed && !isPreempted)
      found.push({
        kind: 'wakeup',
        from: { cpu: waits.place[wait]!, time: start },
        to: { cpu: lanes.colour[next]!, time: lanes.start[next]! },
      });
  }
  return found;
}
