// All records: narrowed by filters that are kept in the address, a hundred at a time, two of them
// to compare, a question's figures over time.

import { fill, h, visible } from '../../dom';
import { count, formatMoments } from '../../format';
import type { Entry, Filter, Listing } from '../../source';
import type { Page, Part } from '../../view';
import { commandLine, recordHref, shellWords } from '../../words';
import { REPORT_SCHEMA } from '../fleet-report/at-hand';
import { MAX_POINTS, overTimePart } from './over-time';
import { explainIncomparable, pairNote, sortByTime } from './pair';
import { questionTable } from './questions';
import type { TimeRange } from './shape';
import {
  PAGE_SIZE,
  formatAddress,
  parseFilter,
  foldParts,
  isFleet,
  nameKind,
  parseTimeRange,
  findRepeatedSubjects,
} from './shape';
import { formatVerdict } from './verdict';

/** The search starts after this many milliseconds without a key. */
const SEARCH_DELAY_MS = 200;

/** Options of a filter: a fleet has thousands of hosts. */
const MAX_OPTIONS = 500;

interface HistoryState {
  page: Page;
  filter: Filter;
  listing: Listing;
  chosen: Map<string, Entry>;
  heading: HTMLElement;
  body: HTMLElement;
  summary: HTMLElement;
  compare: HTMLElement;
  plot: HTMLElement;
  questions: HTMLElement;
  range: TimeRange | null;
  plotted: Part | null;
  controls: Controls;
  lastRequest: number;
}

/** The history, or the records of a report. */
export async function historyView(
  query: URLSearchParams,
  page: Page,
): Promise<Part> {
  const filter = parseFilter(query);
  const listing = await page.source.list({ ...filter, limit: PAGE_SIZE });
  const held: HistoryState = {
    page,
    filter,
    listing,
    chosen: new Map(),
    lastRequest: 0,
    plotted: null,
    heading: h('h1'),
    body: h('div'),
    summary: h('p.muted', { role: 'status' }),
    compare: h('div.compare-bar'),
    plot: h('div'),
    questions: h('div'),
    range: parseTimeRange(query),
    controls: filterControls(filter),
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  held.controls.element.addEventListener('input', (event) => {
    clearTimeout(timer);
    timer = setTimeout(
      () => void applyFilter(held),
      event.target instanceof HTMLSelectElement ? 0 : SEARCH_DELAY_MS,
    );
  });
  held.controls.element.addEventListener('submit', (event) =>
    event.preventDefault(),
  );
  const state = h('p.state', { role: 'status' });
  const stop = page.source.watchList(
    () => {
      clearTimeout(timer);
      timer = setTimeout(
        () =>
          void reload(held, Math.max(PAGE_SIZE, held.listing.records.length)),
        SEARCH_DELAY_MS,
      );
    },
    (words) => (state.textContent = words),
  );
  redrawList(held);
  await redrawPlot(held);
  const element = h(
    'div',
    held.heading,
    state,
    held.plot,
    held.questions,
    held.controls.element,
    held.summary,
    held.compare,
    held.body,
  );
  return {
    element,
    dispose: () => {
      clearTimeout(timer);
      held.lastRequest += 1;
      stop();
      held.plotted?.dispose();
    },
  };
}

interface Controls {
  element: HTMLFormElement;
  read(): Filter;
  offer(listing: Listing, filter: Filter): void;
}

const SELECTS = [
  ['host', 'Host'],
  ['schema', 'Kind'],
  ['tag', 'Tag'],
  ['subject', 'Question'],
] as const;

function filterControls(filter: Filter): Controls {
  const text = h('input', {
    type: 'search',
    value: filter.text ?? '',
    placeholder: 'Search',
    aria: { label: 'Words of title, host, verdict or tag' },
  });
  const selects = SELECTS.map(([key, name]) => ({
    key,
    select: h('select', { name: key }),
    name,
  }));
  // A phone has room for the search alone, unless a filter is chosen.
  const wide = matchMedia('(min-width: 40rem)');
  const others = h(
    'details',
    {
      open: wide.matches || SELECTS.some(([key]) => filter[key]),
      ontoggle: () => (others.open ||= wide.matches),
    },
    h('summary', 'Filters'),
    h(
      'div',
      ...selects.map(({ name, select }) =>
        h('label', h('span', `${name} `), select),
      ),
    ),
  );
  const element = h('form.controls.filters', { role: 'search' }, text, others);
  return {
    element,
    read: () => {
      const next: Filter = text.value ? { text: text.value } : {};
      for (const { key, select } of selects)
        if (select.value) next[key] = select.value;
      return next;
    },
    offer: (listing, now) => {
      const values = {
        host: listing.hosts,
        schema: listing.schemas,
        tag: listing.tags,
        subject: findRepeatedSubjects(listing.records),
      };
      for (const { key, select, name } of selects) {
        const chosen = now[key] ?? '';
        // Some records have no host; the empty value means all.
        const offered = values[key].filter(Boolean).slice(0, MAX_OPTIONS);
        const all =
          chosen && !offered.includes(chosen) ? [chosen, ...offered] : offered;
        const optionText = (value: string): string =>
          visible(key === 'schema' ? nameKind(value) : value);
        fill(
          select,
          h('option', { value: '' }, `all ${name.toLowerCase()}s`),
          ...all.map((value) =>
            h(
              'option',
              { value, selected: value === chosen },
              optionText(value),
            ),
          ),
        );
        const hidden = values[key].length - MAX_OPTIONS;
        if (hidden > 0)
          select.append(
            h(
              'option',
              { disabled: true },
              `and ${hidden.toLocaleString('en-US')} more: narrow by words`,
            ),
          );
        select.parentElement!.hidden = all.length === 0;
      }
    },
  };
}

async function applyFilter(held: HistoryState): Promise<void> {
  const before = held.filter.subject;
  held.filter = held.controls.read();
  if (held.filter.subject !== before) held.range = null;
  // The address is changed without a new view, so that the field keeps its focus.
  updateAddress(held);
  const done = await reload(held, PAGE_SIZE);
  if (done && (held.filter.subject || before)) await redrawPlot(held);
}

const updateAddress = (held: HistoryState): void =>
  history.replaceState(null, '', formatAddress(held.filter, held.range));

/** Loads the list again; false if it failed or a later request overtook this one. */
async function reload(held: HistoryState, limit: number): Promise<boolean> {
  const request = (held.lastRequest += 1);
  try {
    const listing = await held.page.source.list({ ...held.filter, limit });
    if (request !== held.lastRequest) return false;
    held.listing = listing;
    redrawList(held);
    return true;
  } catch (error) {
    if (request === held.lastRequest)
      held.summary.textContent = `The list is not up to date: ${error instanceof Error ? visible(error.message) : ''}`;
    return false;
  }
}

async function showMore(held: HistoryState): Promise<void> {
  const at = held.listing.records.length;
  if (!(await reload(held, at + PAGE_SIZE))) return;
  held.body.querySelectorAll<HTMLElement>('tbody a.title')[at]?.focus();
}

async function redrawPlot(held: HistoryState): Promise<void> {
  held.plotted?.dispose();
  held.plotted = null;
  held.plot.replaceChildren();
  const { subject } = held.filter;
  held.heading.textContent = visible(subject ?? 'Records');
  document.title = `${held.heading.textContent} · pinwise`;
  if (!subject) return;
  const request = held.lastRequest;
  const listing = await held.page.source.list({
    ...held.filter,
    limit: MAX_POINTS,
  });
  if (request !== held.lastRequest) return;
  held.plotted = overTimePart(subject, listing, held.page, {
    range: held.range,
    keep: (range) => {
      held.range = range;
      updateAddress(held);
    },
  });
  held.plot.replaceChildren(held.plotted.element);
}

function redrawList(held: HistoryState): void {
  const { listing, filter } = held;
  held.controls.offer(listing, filter);
  const isFiltered = formatAddress(filter) !== formatAddress({});
  held.controls.element.hidden = listing.total === 0 && !isFiltered;
  if (listing.total === 0) {
    held.questions.replaceChildren();
    held.summary.textContent = isFiltered ? 'No matching records.' : '';
    fill(
      held.body,
      isFiltered
        ? h('p', h('a', { href: '#/history' }, 'Show all records'))
        : firstSteps(held.page),
    );
    return;
  }
  const shown = listing.records.length;
  held.summary.textContent =
    shown < listing.total
      ? `The newest ${shown.toLocaleString('en-US')} of ${count(listing.total, 'record')}`
      : count(listing.total, 'record');
  const button = h(
    'button',
    { onclick: () => void showMore(held) },
    `Show ${Math.min(PAGE_SIZE, listing.total - shown)} more`,
  );
  fill(held.body, recordTable(held), shown < listing.total && button);
  fill(
    held.questions,
    held.filter.subject
      ? null
      : questionTable(listing.records, held.page.source),
  );
  showCompare(held);
}

/** What to do in an empty store. */
const firstSteps = (page: Page): HTMLElement =>
  h(
    'div',
    h(
      'p',
      page.source.kind === 'site'
        ? 'No records yet. Make the first with one of these; it appears here:'
        : 'This report has no records. Make some with these:',
    ),
    commandLine(
      'pinwise topology --measure',
      'the command that measures this machine',
    ),
    commandLine(
      'pinwise compare -- COMMAND',
      'the command that compares placements',
    ),
  );

const COLUMNS = ['Time', 'Kind', 'Host', 'Record'] as const;

function recordTable(held: HistoryState): HTMLElement {
  const canCompare =
    held.page.source.kind === 'site' ||
    held.listing.records.some((a) =>
      held.listing.records.some((b) => held.page.source.canDiff(a.id, b.id)),
    );
  const hasTags = held.listing.records.some(({ tags }) => tags.length > 0);
  const heads = [
    ...(canCompare ? ['Compare'] : []),
    ...COLUMNS,
    ...(hasTags ? ['Tags'] : []),
  ];
  const folded = foldParts(held.listing.records, held.filter.tag);
  const moment = formatMoments(folded.map(({ entry }) => entry.time));
  const rows = folded.flatMap(({ entry, others, tag }) => [
    recordRow(held, entry, moment(entry.time), canCompare, hasTags),
    ...(tag === undefined
      ? []
      : [
          othersRow(
            count(others, isFleet(entry) ? 'part' : 'other part'),
            tag,
            heads.length,
          ),
        ]),
  ]);
  return h(
    'table.records',
    { role: 'table' },
    h(
      'thead',
      { role: 'rowgroup' },
      h(
        'tr',
        { role: 'row' },
        ...heads.map((name) =>
          h('th', { scope: 'col', role: 'columnheader' }, name),
        ),
      ),
    ),
    h('tbody', { role: 'rowgroup' }, ...rows),
  );
}

/** A link to the other parts of a bench or a fleet. */
const othersRow = (others: string, tag: string, columns: number): HTMLElement =>
  h(
    'tr',
    { role: 'row' },
    h(
      'td',
      { role: 'cell', colSpan: columns },
      h('a', { href: formatAddress({ tag }) }, `and ${others} of ${tag}`),
    ),
  );

function recordRow(
  held: HistoryState,
  entry: Entry,
  moment: string,
  canCompare: boolean,
  hasTags: boolean,
): HTMLElement {
  const cell = (
    ...children: Parameters<typeof fill> extends [Element, ...infer C]
      ? C
      : never
  ): HTMLElement => h('td', { role: 'cell' }, ...children);
  const box = h('input', {
    type: 'checkbox',
    checked: held.chosen.has(entry.id),
    data: { id: entry.id },
    aria: {
      label: `Compare ${entry.title}, ${entry.host}, ${moment}`,
    },
  });
  box.addEventListener('change', () => {
    if (box.checked) held.chosen.set(entry.id, entry);
    else held.chosen.delete(entry.id);
    showCompare(held);
  });
  const tags = entry.tags.map((tag) =>
    h('a', { href: formatAddress({ tag }), class: 'tag' }, tag),
  );
  return h(
    'tr',
    { role: 'row', class: entry.complete ? '' : 'unfinished' },
    canCompare && h('td', { role: 'cell', class: 'pick' }, box),
    h('td', { role: 'cell', class: 'when' }, moment),
    cell(visible(nameKind(entry.schema))),
    cell(h('a', { href: formatAddress({ host: entry.host }) }, entry.host)),
    h(
      'th',
      { scope: 'row', role: 'rowheader' },
      h('a.title', { href: recordHref(entry.id) }, entry.title || entry.id),
      h('div.muted', { title: formatVerdict(entry) }, formatVerdict(entry)),
    ),
    hasTags && cell(...tags),
  );
}

/** Records that cannot be compared with the chosen one are disabled. */
function disableIncomparable(held: HistoryState): void {
  const [first, second] = [...held.chosen.values()];
  for (const box of held.body.querySelectorAll<HTMLInputElement>(
    '.pick input',
  )) {
    const entry = held.listing.records.find(
      (one) => one.id === box.dataset['id'],
    );
    if (!entry) continue;
    const isChosen = held.chosen.has(entry.id);
    const why =
      isChosen || !first
        ? ''
        : second
          ? 'two are chosen already'
          : explainIncomparable(first, entry) ||
            (held.page.source.canDiff(
              ...(sortByTime(first, entry, held.listing.records).map(
                (one) => one.id,
              ) as [string, string]),
            )
              ? ''
              : 'is not compared with it in this report');
    box.disabled = why !== '';
    box.title = why && `Cannot be compared: ${why}`;
  }
}

function showCompare(held: HistoryState): void {
  disableIncomparable(held);
  const chosen = [...held.chosen.values()];
  if (chosen.length === 0) {
    fill(held.compare, pairNote(held.page.source, held.listing));
    return;
  }
  if (chosen.length === 1) {
    const words = `Choose another ${nameKind(chosen[0]!.schema)} to compare. Disabled boxes: another kind, or no figure in common.`;
    fill(held.compare, h('p', { role: 'status' }, words));
    return;
  }
  const [a, b] = sortByTime(chosen[0]!, chosen[1]!, held.listing.records);
  if (a.schema === REPORT_SCHEMA) {
    const fleets = [a, b].map(({ id }) => id.replace(/\.report$/, ''));
    fill(
      held.compare,
      h('p', { role: 'status' }, 'Compare the two fleets, figure by figure:'),
      commandLine(`pinwise fleet diff ${shellWords(fleets)}`),
    );
    return;
  }
  const moment = formatMoments([a.time, b.time]);
  const link = h(
    'a',
    { href: `#/diff/${encodeURIComponent(a.id)}/${encodeURIComponent(b.id)}` },
    'Compare the two chosen records',
  );
  fill(
    held.compare,
    h(
      'p',
      { role: 'status' },
      link,
      h(
        'span.muted',
        `: ${moment(a.time)} ${a.host} with ${moment(b.time)} ${b.host}`,
      ),
    ),
  );
}
