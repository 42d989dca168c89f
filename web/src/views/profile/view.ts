// Profiles, and two profiles subtracted.

import './profile.css';
import '../trace/trace.css';

import { h, svg, visible } from '../../dom';
import { count, digits, percent, seconds, wholeNumber } from '../../format';
import { adviceLine } from '../../method';
import type { ProfileDiff, ProfileRecord, SpotRecord } from '../../records';
import type { AnyRecord } from '../../source';
import { type Table, numberColumns, tableElement } from '../../table';
import type { Page, Part, View } from '../../view';
import { type Facts, facts, hostFacts, section } from '../../words';
import { attributionSections } from './attribution';
import { flameGraph } from './flame';
import * as shape from './shape';
import { timeOf } from './shape';
import { filterMap } from '../../lists';
import { mapNumber } from '../../numbers';

/** Maximum of functions in tables. */
const MAX_FUNCTIONS = 20;
/** Hot spots that are open at first. */
const OPEN_SPOTS = 1;

const tableOrNull = (table: Table | null): HTMLElement | null =>
  table ? tableElement(table) : null;
const noteList = (
  notes: readonly string[] | null | undefined,
): HTMLElement | null =>
  notes?.length ? h('ul', ...notes.map((note) => h('li', note))) : null;

export function profileView(any: AnyRecord, page: Page): View {
  const record = any as ProfileRecord;
  const tree = shape.toFlame(record);
  const whole = record.total?.cpu_s ?? 0;
  const graph =
    tree &&
    flameGraph(
      tree,
      'Flame graph',
      `${seconds(whole)} of CPU time, ${count(record.total?.samples ?? 0, 'sample')}; the width of a call is the time in it and its callees; inverted, the width of a caller is the time spent in the function above it.`,
      { invert: shape.invertFlame, place: page.place },
    );
  const threads = shape.threadTable(record);
  const element = h(
    'article',
    h('p.verdict', record.answer?.sentence ?? ''),
    adviceLine(record.answer?.advice),
    graph && section('Calls', graph.element),
    section('Figures', facts(figureFacts(record))),
    functionSection(shape.functionTable(record, MAX_FUNCTIONS)),
    spotSection(record),
    threads && section('Threads', tableElement(threads)),
    section(
      'How it was sampled',
      facts({ ...hostFacts(record.host), ...samplingFacts(record) }),
      noteList(record.notes),
    ),
  );
  return toView(element, graph);
}

function toView(element: HTMLElement, graph: Part | null): View {
  return { element, dispose: () => graph?.dispose() };
}

function functionSection(table: Table | null): HTMLElement | null {
  return table ? section('Functions', tableElement(table)) : null;
}

function figureFacts(record: ProfileRecord): Facts {
  const { total, work, kernel, waits, pause } = record;
  const share = (cpu_s: number | null | undefined): string | null =>
    typeof cpu_s !== 'number'
      ? null
      : `${seconds(cpu_s)} (${percent(cpu_s / Math.max(total?.cpu_s ?? 0, 1e-12))})`;
  const each = total?.cpu_s_per_unit;
  return {
    'CPU time': total ? seconds(total.cpu_s) : null,
    [`CPU time per ${work?.unit ?? 'unit'}`]: mapNumber(each, seconds),
    'In the kernel': kernel ? share(kernel.cpu_s) : null,
    'Waiting in spin hints': waits ? share(waits.cpu_s) : null,
    'Broken stacks': record.stacks ? shape.describeStacks(record) : null,
    'A PAUSE takes': pause
      ? `${digits(pause.ns)} ns on CPU ${pause.cpu}`
      : null,
    Runs: record.runs ? String(record.runs.length) : null,
  };
}

function samplingFacts(record: ProfileRecord): Facts {
  return {
    'Samples by': record.event
      ? `${record.event} at ${record.hz ?? '–'} Hz`
      : null,
    'Lost samples': record.lost ? String(record.lost) : null,
    'CPU time of pinwise itself': mapNumber(record.own_cpu_s, seconds),
  };
}

/** The hottest instructions with the code around them. */
function spotSection(record: ProfileRecord): HTMLElement | null {
  const list = record.instructions ?? [];
  if (list.length === 0) return null;
  return section(
    'Hot instructions',
    ...list.map((spot, at) =>
      spotElement(spot, record.total?.cpu_s ?? 0, at < OPEN_SPOTS),
    ),
  );
}

function spotElement(
  spot: SpotRecord,
  whole: number,
  isOpen: boolean,
): HTMLElement {
  const name = visible(shape.spotName(spot));
  const lines = spot.lines ?? [];
  const shown = spot.shown ?? spot.own;
  const title = `${name}: ${seconds(shown?.cpu_s)}, ${percent(timeOf(shown) / Math.max(whole, 1e-12))} of all${lines.length > 0 ? ', in these lines' : ''}`;
  const hottest = Math.max(...lines.map(({ own }) => timeOf(own)), 1e-12);
  const rows = lines.map((line) => {
    const time = timeOf(line.own);
    return h(
      'tr',
      { class: line.is_hint ? 'hint' : '' },
      h('th', { scope: 'row' }, line.address?.toString(16) ?? '–'),
      h('td', time > 0 ? bar(time / hottest) : ''),
      h('td.number', time > 0 ? percent(time / Math.max(whole, 1e-12)) : ''),
      h('td', line.text),
      h(
        'td',
        [line.is_hint ? 'spin hint' : '', line.waits ? 'waiting in it' : '']
          .filter(Boolean)
          .join(', '),
      ),
    );
  });
  const heads = [
    'Address',
    'Time here',
    'Share of all',
    'Instruction',
    'Hint',
  ].map((text) => h('th', { scope: 'col' }, text));
  const body =
    lines.length === 0
      ? h('p.muted', 'The code here could not be read.')
      : h(
          'div.scroll.code',
          {
            role: 'region',
            tabIndex: 0,
            aria: {
              label: `Code around ${name} in ${shape.fileName(spot.module)}, from ${lines[0]?.address?.toString(16) ?? ''}`,
            },
          },
          h(
            'table',
            h('caption', shape.fileName(spot.module)),
            h('thead', h('tr', ...heads)),
            h('tbody', ...rows),
          ),
        );
  return h('details.spot', { open: isOpen }, h('summary', title), body);
}

/** A bar beside the figure, hidden from screen readers. */
function bar(share: number): SVGElement {
  return svg(
    'svg',
    {
      class: 'sharebar',
      viewBox: '0 0 100 10',
      preserveAspectRatio: 'none',
      'aria-hidden': 'true',
    },
    svg('rect', { x: 0, y: 0, width: 100 * share, height: 10 }),
  );
}

export function profileDiffView(any: AnyRecord, page: Page): View {
  const diff = any as ProfileDiff;
  const tree = shape.diffToFlame(diff);
  const graph =
    tree &&
    flameGraph(
      tree,
      'Difference flame graph',
      `The width of a call is its CPU time per ${diff.unit}, before or after, whichever is longer.`,
      { place: page.place },
    );
  const pausing = shape.describePausing(diff);
  const table = shape.changeTable(diff, MAX_FUNCTIONS);
  const chance = shape.changeTable(diff, MAX_FUNCTIONS, true);
  const element = h(
    'article',
    h('p.verdict', shape.diffHeadline(diff)),
    adviceLine(
      'Check the change against run-to-run noise: pinwise compare --command OLD --command NEW.',
    ),
    diff.headline?.includes('±') &&
      h('p.muted', '±: 95 % interval of the sampling error alone.'),
    ...(diff.sentences ?? []).map((sentence) => h('p', sentence)),
    pausing && h('p', pausing),
    graph && section('Calls', graph.element),
    ...attributionSections(diff.attributions),
    (table ?? chance) &&
      section(
        'Functions',
        tableOrNull(table),
        chance &&
          h(
            'details',
            h('summary', 'Changes that may be chance'),
            tableElement(chance),
          ),
      ),
    section(
      'The two profiles',
      tableOrNull(sideTable(diff)),
      noteList(diff.notes),
    ),
  );
  return toView(element, graph);
}

function sideTable(diff: ProfileDiff): Table {
  const pair = [
    ['before', diff.before],
    ['after', diff.after],
  ] as const;
  return {
    caption: 'Before and after',
    columns: [
      'Side',
      'Record',
      'About',
      'Host',
      ...numberColumns('Units', 'Samples', 'CPU time', 'A PAUSE takes'),
    ],
    rows: filterMap(pair, ([name, side]) =>
      side
        ? [
            name,
            side.id,
            side.title,
            side.host,
            digits(side.units),
            wholeNumber(side.samples),
            seconds(side.cpu_s),
            side.pause_ns ? `${digits(side.pause_ns)} ns` : '–',
          ]
        : null,
    ),
  };
}
