// The totals of each thread in a part of the trace, for the table below the timeline.

import { count, percent, seconds, wholeNumber } from '../../format';
import type { Cell, SortableTable } from '../../sortable';
import { numberColumns } from '../../table';
import { firstEndingAfter } from './lanes';
import type { Scene, Window } from './scene';
import { CAUSE_WORDS, formatMoment } from './describe';

/** The totals of a thread within a span of time, ns. */
export interface ThreadTotals {
  /** Index of the thread. */
  thread: number;
  running: number;
  /** Time by index of the waits' causes. */
  waiting: number[];
  migrations: number;
}

const overlap = (start: number, length: number, span: Window): number =>
  Math.max(0, Math.min(start + length, span.to) - Math.max(start, span.from));

/** Totals of each thread that ran, waited or moved in a span, the busiest first. */
export function sumTotals(scene: Scene, span: Window): ThreadTotals[] {
  const { slices, waits } = scene;
  const lanes = scene.lanes('cpus');
  if (!slices || !lanes) return [];
  const all = new Map<number, ThreadTotals>();
  const totalsOfThread = (thread: number): ThreadTotals => {
    let totals = all.get(thread);
    if (!totals) {
      const waiting = waits?.causes.map(() => 0) ?? [];
      totals = { thread, running: 0, waiting, migrations: 0 };
      all.set(thread, totals);
    }
    return totals;
  };
  for (let row = 0; row < lanes.keys.length; row += 1) {
    const last = lanes.first[row + 1]!;
    for (
      let at = firstEndingAfter(lanes, row, span.from);
      at < last && lanes.start[at]! < span.to;
      at += 1
    ) {
      const totals = totalsOfThread(slices.thread[lanes.origin[at]!]!);
      totals.running += overlap(lanes.start[at]!, lanes.length[at]!, span);
      if (lanes.moved[at] && lanes.start[at]! >= span.from)
        totals.migrations += 1;
    }
  }
  for (
    let at = scene.firstWait(span.from);
    waits && at < waits.count;
    at += 1
  ) {
    if (waits.start[at]! >= span.to) break;
    const waited = overlap(waits.start[at]!, waits.length[at]!, span);
    const thread = scene.placeOf.get(waits.who[at]!);
    if (waited > 0 && thread !== undefined)
      totalsOfThread(thread).waiting[waits.cause[at]!]! += waited;
  }
  return [...all.values()].sort(
    (a, b) => b.running - a.running || a.thread - b.thread,
  );
}

/** Shares of traced threads and of others on each CPU in a span, of a trace without slices. */
function spanRows(scene: Scene, span: Window): Cell[][] {
  const spans = scene.spans;
  if (!spans) return [];
  const sum = (shares: readonly number[] | null | undefined): number =>
    (shares ?? []).reduce(
      (all, share, at) =>
        all + share * overlap(at * spans.lengthNs, spans.lengthNs, span),
      0,
    );
  return spans.cpus.map((cpu) => [
    { text: `CPU ${cpu.cpu}`, sort: cpu.cpu ?? null },
    timeCell(sum(cpu.own)),
    timeCell(cpu.foreign?.length ? sum(cpu.foreign) : null),
  ]);
}

const timeCell = (ns: number | null): Cell => ({
  text: ns === null ? '–' : seconds(ns * 1e-9),
  sort: ns,
});

/** The totals of a span as a table. */
export function totalsTable(scene: Scene, span: Window): SortableTable {
  const length = span.to - span.from;
  const where = `${formatMoment(span.from)} to ${formatMoment(span.to)}, ${seconds(length * 1e-9)}`;
  if (!scene.slices)
    return {
      caption: `Selected: ${where}; each CPU, as far as the record's spans show`,
      columns: ['CPU', ...numberColumns('Traced threads', 'Others')],
      rows: spanRows(scene, span),
    };
  const totals = sumTotals(scene, span);
  const causes = scene.waits?.causes ?? [];
  const seen = causes
    .map((_, cause) => cause)
    .filter((cause) => totals.some((row) => row.waiting[cause]! > 0));
  const waited = (row: ThreadTotals): number =>
    row.waiting.reduce((all, ns) => all + ns, 0);
  const shortest = scene.shortestWaitNs;
  const kept =
    scene.waits && shortest
      ? `; waits of ${seconds(shortest * 1e-9)} and more`
      : '';
  return {
    caption: `Selected: ${where}; ${count(totals.length, 'thread')}${kept}`,
    columns: [
      'Thread',
      ...numberColumns(
        'Running',
        'Of the span',
        ...(scene.waits ? ['Waiting'] : []),
        ...seen.map(
          (cause) =>
            `Waiting: ${CAUSE_WORDS[causes[cause]!] ?? causes[cause]!}`,
        ),
        'Migrations',
      ),
    ],
    rows: totals.map((row) => [
      { text: scene.threadName(row.thread) },
      timeCell(row.running),
      { text: percent(row.running / length), sort: row.running },
      ...(scene.waits ? [timeCell(waited(row))] : []),
      ...seen.map((cause) => timeCell(row.waiting[cause]!)),
      { text: wholeNumber(row.migrations), sort: row.migrations },
    ]),
  };
}
