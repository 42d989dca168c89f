// Which threads of a moment are worth a look.

import type { TopThread } from '../../records';

/** Below this share of a CPU, in per cent, a figure is shown as 0. */
const MIN_PERCENT = 0.005;

/** Threads that used or waited for a CPU, and the others. If none did, all are shown. */
export function splitIdle(
  threads: readonly TopThread[],
): [busy: TopThread[], idle: TopThread[]] {
  const isBusy = ({ cpu_percent: used, wait_percent: queued }: TopThread) =>
    (used ?? 0) >= MIN_PERCENT || (queued ?? 0) >= MIN_PERCENT;
  const busy = threads.filter(isBusy);
  return busy.length > 0
    ? [busy, threads.filter((one) => !isBusy(one))]
    : [[...threads], []];
}
