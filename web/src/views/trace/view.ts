// A trace: its result, its figures, and which thread ran where and when.

import './trace.css';

import { chart } from '../../chart';
import { fill, h } from '../../dom';
import { count, seconds } from '../../format';
import { commandList } from '../../headline';
import { filterMap } from '../../lists';
import { finite } from '../../numbers';
import type { TraceRecord } from '../../records';
import { sortableTable } from '../../sortable';
import type { AnyRecord } from '../../source';
import { type Table, tableElement, numberColumns } from '../../table';
import { adviceLine, findingsPart, furtherFindings } from '../../method';
import { onPrint } from '../../print';
import type { Page, Place, View } from '../../view';
import { facts, hostFacts, section } from '../../words';
import { findTopology } from '../machine/stored-topology';
import { CAUSE_WORDS, formatMoment } from './describe';
import { fromParams } from './address';
import { type Scene, buildSceneInSteps, buildScene } from './scene';
import * as shape from './shape';
import { type Steps, type Work, workInPieces } from './steps';
import { timePlan } from './time';
import { type Timeline, timeline } from './timeline';

/** Maximum of waits in the table. */
const MAX_WAITS = 50;
/** From this many slices on, they are read after the rest of the page is shown. */
const MANY_SLICES = 50_000;

export function traceView(any: AnyRecord, page: Page): View {
  const record = any as TraceRecord;
  const slot = h('div');
  const waits = record.timeline?.waits?.count ? section('Longest waits') : null;
  let drawn: Timeline | null = null;
  const show = (scene: Scene): void => {
    drawn = timeline(scene, shape.timelineSummary(record), page.place);
    void loadCaches(record, page).then(drawn.setCaches, () => undefined);
    fill(
      slot,
      ...scene.damage.map((reported) => h('p', { role: 'note' }, reported)),
      drawn.element,
    );
    const table = longestWaitTable(scene, drawn);
    if (table)
      waits?.append(
        h(
          'details',
          h('summary', 'Each, with its place in the timeline'),
          table,
        ),
      );
    else waits?.remove();
  };
  const locks = shape.lockTable(record);
  const answer = [
    h('p.verdict', shape.verdictSentence(record)),
    adviceLine(shape.adviceOf(record)),
  ];
  const isPolled = shape.isPolled(record);
  const time = isPolled ? timePlan(record) : null;
  const bar = time && chart(time);
  const findings = (record.answer ? findingsPart : furtherFindings)(
    record.findings,
  );
  const figures = figureSection(record);
  const element = h(
    'article',
    ...(locks
      ? [h('div.answer', h('div', ...answer), tableElement(locks))]
      : answer),
    ...(isPolled
      ? [
          commandList([
            ['Trace what held threads back', shape.betterTrace(record)],
          ]),
          bar?.element,
          figures,
          findings,
        ]
      : [section('Timeline', slot), findings, figures]),
    waits,
    section('Threads', sortableTable(shape.threadTable(record)).element),
    useSection(record),
    section(
      'How it was traced',
      facts(hostFacts(record.host)),
      noteList(record),
    ),
  );
  const many = record.timeline?.packed?.count ?? 0;
  if (many < MANY_SLICES && !isPolled) show(buildScene(record));
  const work =
    many < MANY_SLICES ? null : readLater(record, page.place, slot, show);
  return {
    element,
    dispose: () => {
      work?.stop();
      drawn?.dispose();
      bar?.dispose();
    },
  };
}

const figureSection = (record: TraceRecord): HTMLElement =>
  section(
    'Figures',
    facts(shape.headlineFigures(record)),
    ...[
      shape.migrationTable(record),
      shape.waitTable(record),
      shape.blockedTable(record),
      shape.sharingTable(record),
      shape.interruptTable(record),
      shape.memoryTable(record),
    ].map(tableOrNull),
  );

/** Reads the slices after the rest of the page is painted, at the latest before printing. */
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
  const work = workInPieces(sceneAndFrame(record, place), show, (error) =>
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

/** Builds the scene with what its first frame needs. */
function* sceneAndFrame(
  record: TraceRecord,
  place: Place | undefined,
): Steps<Scene> {
  const scene = yield* buildSceneInSteps(record);
  const params = place?.params ?? new URLSearchParams();
  const shown = fromParams(params, scene.span);
  yield* scene.prepareRows(shown.rows);
  if (shown.thread !== null || shown.find || shown.colourBy === 'cause')
    yield* scene.prepareOthers();
  return scene;
}

/** Loads the last-level cache of each CPU from a stored topology of the machine; empty without one. */
async function loadCaches(
  record: TraceRecord,
  { source }: Page,
): Promise<ReadonlyMap<number, number>> {
  const topology = await findTopology(record.host, source);
  return new Map(
    filterMap(topology?.cpus ?? [], ({ cpu, llc }) =>
      finite(cpu) && finite(llc) ? ([cpu, llc] as const) : null,
    ),
  );
}

const tableOrNull = (table: Table | null): HTMLElement | null =>
  table ? tableElement(table) : null;

function noteList(record: TraceRecord): HTMLElement {
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
function longestWaitTable(scene: Scene, drawn: Timeline): HTMLElement | null {
  const { waits } = scene;
  if (!waits || waits.count === 0) return null;
  const rows = shape.findLongestWaits(waits, MAX_WAITS).map((at) => {
    const place = scene.placeOf.get(waits.who[at]!);
    const name =
      place === undefined ? String(waits.who[at]) : scene.threadName(place);
    const cause = waits.causes[waits.cause[at]!] ?? 'unreported';
    const [start, length] = [waits.start[at]!, waits.length[at]!];
    const go = h(
      'button',
      {
        type: 'button',
        aria: { label: `Show the wait of ${name} at ${formatMoment(start)}` },
        onclick: () => drawn.show('threads', place ?? 0, start, length),
      },
      'Show',
    );
    return [
      name,
      seconds(length * 1e-9),
      formatMoment(start),
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

function useSection(record: TraceRecord): HTMLElement | null {
  const [cpus, cores] = [shape.cpuTable(record), shape.coreTable(record)];
  if (!cpus && !cores) return null;
  return section('CPUs and cores', tableOrNull(cpus), tableOrNull(cores));
}
