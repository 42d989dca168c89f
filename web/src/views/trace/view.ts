// A trace: what it means, its figures, which thread ran where and when.

import './trace.css';

import { fill, h, visible } from '../../dom';
import { count, seconds } from '../../format';
import { filterMap } from '../../lists';
import { finite } from '../../numbers';
import type { ThreadRecord, TraceRecord } from '../../records';
import type { AnyRecord } from '../../source';
import { type Table, tableElement, numberColumns } from '../../table';
import { adviceLine } from '../../method';
import { onPrint } from '../../print';
import type { Page, Place, View } from '../../view';
import { facts, findingList, hostFacts, section } from '../../words';
import { topologyOf } from '../machine/at-hand';
import { CAUSE_WORDS, moment } from './describe';
import { fromParams } from './address';
import { type Scene, sceneInSteps, sceneOf } from './scene';
import * as shape from './shape';
import { type Steps, type Work, inPieces } from './steps';
import { type Timeline, timeline } from './timeline';

/** Waits listed in the table. */
const MAX_WAITS = 50;
/** Threads listed before one asks for more. */
const FEW_THREADS = 30;
/** From this many slices on, the rest of the page is shown before they are read. */
const MANY_SLICES = 50_000;

export function traceView(any: AnyRecord, page: Page): View {
  const record = any as TraceRecord;
  const slot = h('div');
  const waits = record.timeline?.waits?.count ? section('Longest waits') : null;
  let drawn: Timeline | null = null;
  const show = (scene: Scene): void => {
    drawn = timeline(scene, shape.timelineSummary(record), page.place);
    void cachesOf(record, page).then(drawn.setCaches, () => undefined);
    fill(
      slot,
      ...scene.damage.map((reported) => h('p', { role: 'note' }, reported)),
      drawn.element,
    );
    const table = longest(scene, drawn);
    if (table) waits?.append(table);
    else waits?.remove();
  };
  const tables = [
    shape.migrationTable(record),
    shape.waitTable(record),
    shape.blockedTable(record),
    shape.sharingTable(record),
    shape.interruptTable(record),
    shape.memoryTable(record),
  ];
  const element = h(
    'article',
    h('p.verdict', shape.verdict(record)),
    adviceLine(record.findings?.[0]?.advice),
    section('Timeline', slot),
    section('Findings', findingList(record.findings, 'No findings.')),
    section('Figures', facts(shape.headline(record)), ...tables.map(optional)),
    waits,
    section('Threads', threadTable(record)),
    use(record),
    section('How it was traced', facts(hostFacts(record.host)), notes(record)),
  );
  const many = record.timeline?.packed?.count ?? 0;
  if (many < MANY_SLICES) show(sceneOf(record));
  const work =
    many < MANY_SLICES ? null : readLater(record, page.place, slot, show);
  return {
    element,
    dispose: () => {
      work?.stop();
      drawn?.dispose();
    },
  };
}

/** Reads the slices once the rest of the page is painted, at the latest when it is printed. */
function readLater(
  record: TraceRecord,
  place: Place | undefined,
  slot: HTMLElement,
  show: (scene: Scene) => void,
): Work {
  const reading = h(
    'p.muted.reading',
    { aria: { busy: 'true' } },
    `Reading ${count(record.timeline?.packed?.count ?? 0, 'slice')} …`,
  );
  reading.style.setProperty('--rows', String(record.cpus?.length ?? 0));
  fill(slot, reading);
  const work = inPieces(sceneAndFrame(record, place), show, (error) =>
    fill(
      slot,
      h(
        'p',
        { role: 'note' },
        `The timeline cannot be drawn: ${error instanceof Error ? error.message : String(error)}.`,
      ),
    ),
  );
  const stopListening = onPrint(work.finish);
  return {
    ...work,
    stop: () => {
      stopListening();
      work.stop();
    },
  };
}

/** The scene, and what its first frame needs. */
function* sceneAndFrame(
  record: TraceRecord,
  place: Place | undefined,
): Steps<Scene> {
  const scene = yield* sceneInSteps(record);
  const params = place?.params ?? new URLSearchParams();
  const shown = fromParams(params, scene.span);
  yield* scene.ahead(shown.rows);
  if (shown.thread !== null || shown.find || shown.colourBy === 'cause')
    yield* scene.aheadOfChoice();
  return scene;
}

/** Last-level caches of the CPUs, from a topology of the same machine that is at hand; empty if
 * there is none. */
async function cachesOf(
  record: TraceRecord,
  { source }: Page,
): Promise<ReadonlyMap<number, number>> {
  const topology = await topologyOf(record.host, source);
  return new Map(
    filterMap(topology?.cpus ?? [], ({ cpu, llc }) =>
      finite(cpu) && finite(llc) ? ([cpu, llc] as const) : null,
    ),
  );
}

const optional = (table: Table | null): HTMLElement | null =>
  table ? tableElement(table) : null;

function notes(record: TraceRecord): HTMLElement {
  const lost = record.lost;
  const all = [
    ...(record.notes ?? []),
    record.avoidable_smt_sharing?.note,
    record.idle_while_waiting?.note,
  ];
  if (lost?.records)
    all.push(
      `${count(lost.records, 'record')} were lost in ${count(lost.windows ?? 0, 'window')} of ${seconds(lost.seconds)}: nothing in them is counted.`,
    );
  const reported = all.filter((note): note is string => Boolean(note));
  return h('ul', ...reported.map((note) => h('li', note)));
}

/** The longest waits, each with a button that goes there. */
function longest(scene: Scene, drawn: Timeline): HTMLElement | null {
  const { waits } = scene;
  if (!waits || waits.count === 0) return null;
  const rows = shape.longestWaits(waits, MAX_WAITS).map((at) => {
    const place = scene.placeOf.get(waits.who[at]!);
    const name =
      place === undefined ? String(waits.who[at]) : scene.threadName(place);
    const cause = waits.causes[waits.cause[at]!] ?? 'unreported';
    const [start, length] = [waits.start[at]!, waits.length[at]!];
    const go = h(
      'button',
      {
        type: 'button',
        aria: { label: `Show the wait of ${name} at ${moment(start)}` },
        onclick: () => drawn.show('threads', place ?? 0, start, length),
      },
      'Show',
    );
    return [
      name,
      seconds(length * 1e-9),
      moment(start),
      `CPU ${waits.place[at]}`,
      CAUSE_WORDS[cause] ?? cause,
      place === undefined ? null : go,
    ];
  });
  const columns = [
    { name: 'Thread' },
    ...numberColumns('Waited', 'From'),
    { name: 'Queued on' },
    { name: 'Because' },
    { name: 'Timeline' },
  ];
  const caption =
    waits.count > rows.length
      ? `The ${rows.length} longest of ${count(waits.count, 'recorded wait')}`
      : 'Waits, the longest first';
  return tableElement({ caption, columns, rows });
}

function use(record: TraceRecord): HTMLElement | null {
  const [cpus, cores] = [shape.cpuTable(record), shape.coreTable(record)];
  if (!cpus && !cores) return null;
  return section('CPUs and cores', optional(cpus), optional(cores));
}

/** A table that sorts by the column whose heading is pressed. */
function threadTable(record: TraceRecord): HTMLElement {
  const rows = record.threads ?? [];
  if (rows.length === 0) return h('p.muted', 'No thread was seen.');
  let by = 1;
  let isReversed = false;
  let shown = FEW_THREADS;
  const body = h('tbody');
  const more = h(
    'button',
    {
      onclick: () => {
        shown = rows.length;
        fill();
      },
    },
    `Show all ${count(rows.length, 'thread')}`,
  );
  const heads = shape.THREAD_COLUMNS.map((column, at) => {
    const press = h(
      'button',
      {
        onclick: () => {
          isReversed = at === by && !isReversed;
          by = at;
          fill();
        },
      },
      column.name,
    );
    return h(
      'th',
      { scope: 'col', class: column.isNumber ? 'number' : '' },
      press,
    );
  });
  const fill = (): void => {
    heads.forEach((head, at) => {
      const isDown = Boolean(shape.THREAD_COLUMNS[at]!.isNumber) !== isReversed;
      if (at === by)
        head.setAttribute('aria-sort', isDown ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
      head.firstChild!.textContent =
        shape.THREAD_COLUMNS[at]!.name +
        (at === by ? (isDown ? ' ▾' : ' ▴') : '');
    });
    const sorted = shape.sortRows(rows, shape.THREAD_COLUMNS[by]!, isReversed);
    body.replaceChildren(...sorted.slice(0, shown).map(threadRow));
    more.hidden = shown >= rows.length;
  };
  fill();
  const left = record.threads_left_out ?? 0;
  const caption = `Threads: press a heading to sort${left ? `; ${count(left, 'thread')} with less CPU time left out` : ''}`;
  return h(
    'div',
    h(
      'div.scroll.sortable',
      { role: 'region', tabIndex: 0, aria: { label: 'Table of threads' } },
      h('table', h('caption', caption), h('thead', h('tr', ...heads)), body),
    ),
    more,
  );
}

function threadRow(row: ThreadRecord): HTMLElement {
  const cells = shape.THREAD_COLUMNS.map((column, at) => {
    const text = visible(column.text(row));
    const names = column.isNumber ? 'number' : '';
    return at === 0
      ? h('th', { scope: 'row' }, text)
      : h('td', { class: names }, text);
  });
  return h('tr', ...cells);
}
