// The page: one header, one view at a time, chosen by the address's hash.

import './style.css';

import { fill, h, visible } from './dom';
import { minute } from './format';
import { stateOf } from './live';
import type { TopologyRecord } from './records';
import { parseSchema } from './schema';
import type { AnyRecord, Change, Entry, Source } from './source';
import { openSource, PageError } from './source';
import type { ThemeChoice } from './theme';
import { chooseTheme } from './theme';
import type { Page, Place, View } from './view';
import { viewOf } from './views';
import { commandLine, shellWords } from './words';
import { fleetView } from './views/fleet/view';
import { historyView } from './views/history/view';

const main = h('main', { id: 'main', tabIndex: -1 });
const live = h('p', {
  class: 'offscreen',
  role: 'status',
  aria: { live: 'polite' },
});
let shown: { dispose(): void } | null = null;
let turn = 0;

function start(): void {
  chooseTheme('system');
  const root = document.getElementById('page')!;
  let source: Source;
  try {
    const data = document.getElementById('pinwise-data')?.textContent ?? '';
    source = openSource(parse(data), document.baseURI);
  } catch (error) {
    fill(root, main);
    fill(main, problem(error));
    return;
  }
  const page: Page = {
    source,
    go: (hash) => {
      location.hash = hash;
    },
    announce: (sentence) => {
      live.textContent = sentence;
    },
  };
  fill(
    root,
    h(
      'a',
      {
        href: '#main',
        class: 'skip',
        onclick: (event) => {
          event.preventDefault();
          main.focus();
        },
      },
      'Skip to the content',
    ),
    header(source),
    main,
    live,
  );
  addEventListener('hashchange', () => void route(page));
  void route(page);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new PageError(
      'The data of this page are cut off or damaged.',
      'Write the report again with pinwise record report.',
    );
  }
}

function header(source: Source): HTMLElement {
  const themes: [ThemeChoice, string][] = [
    ['system', 'as the system'],
    ['light', 'light'],
    ['dark', 'dark'],
  ];
  const select = h(
    'select',
    { id: 'theme' },
    ...themes.map(([value, name]) => h('option', { value }, name)),
  );
  select.addEventListener('change', () =>
    chooseTheme(select.value as ThemeChoice),
  );
  return h(
    'header',
    { class: 'bar' },
    h('a', { href: '#/', class: 'name' }, 'pinwise'),
    h(
      'nav',
      { aria: { label: 'Views' } },
      h(
        'a',
        { href: '#/history' },
        source.kind === 'file' ? 'Records' : 'History',
      ),
      h('a', { href: '#/fleet' }, 'Fleet'),
    ),
    h('label', { class: 'theme' }, 'Colours ', select),
  );
}

/** "#/record/ID", "#/record/ID/timeline?from=…", "#/history?host=…", "#/diff/A/B", "#/fleet"; "#/" is the one record of a report, or the history. */
async function route(page: Page): Promise<void> {
  const own = (turn += 1);
  shown?.dispose();
  shown = null;
  fill(main, h('p', { class: 'muted', aria: { busy: 'true' } }, 'Loading …'));
  markCurrent();
  try {
    const view = await resolve(page);
    if (own !== turn) {
      view.dispose();
      return;
    }
    shown = view;
    fill(main, view.element);
  } catch (error) {
    if (own !== turn) return;
    document.title = 'Cannot be shown · pinwise';
    fill(main, problem(error));
  }
  if (own > 1) arrive(page);
}

/** After a step within the page the keyboard, and whoever listens, is at the new heading. */
function arrive(page: Page): void {
  scrollTo(0, 0);
  const heading = main.querySelector('h1');
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  page.announce(document.title);
}

/** Says which entry of the header is shown. */
function markCurrent(): void {
  const at = location.hash.replace(/^#\/?/, '').split(/[/?]/)[0];
  for (const link of document.querySelectorAll('.bar nav a')) {
    if (link.getAttribute('href') === `#/${at}`)
      link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}

async function resolve(
  page: Page,
): Promise<{ element: HTMLElement; dispose(): void }> {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decode);
  const params = new URLSearchParams(query);
  if (parts[0] === 'record' && parts[1])
    return recordPage(parts[1], page, params);
  if (parts[0] === 'diff' && parts[1] && parts[2])
    return diffPage(parts[1], parts[2], page);
  if (parts[0] === 'fleet') return fleetView(page);
  if (parts.length > 0 && parts[0] !== 'history') {
    throw new PageError(
      `This page has no '${parts.join('/')}'.`,
      'The history lists all records.',
    );
  }
  if (parts.length === 0 && page.source.kind === 'file') {
    const listing = await page.source.list({ limit: 2 });
    if (listing.total === 1)
      return recordPage(listing.records[0]!.id, page, params);
  }
  return historyView(params, page);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** What changed from one record to another. */
async function diffPage(
  a: string,
  b: string,
  page: Page,
): Promise<{ element: HTMLElement; dispose(): void }> {
  const view = viewOf(await page.source.diff(a, b), page);
  document.title = 'Two records compared · pinwise';
  const element = h(
    'div',
    {},
    h('h1', {}, 'Two records compared'),
    view.element,
    h(
      'footer',
      {},
      h('h2', {}, 'The same as text'),
      commandLine(`pinwise record diff ${shellWords([a, b])}`),
    ),
  );
  return { element, dispose: () => view.dispose() };
}

/** The place of a record in the address. */
function placeOf(id: string, params: URLSearchParams): Place {
  const address = (part: string, next: URLSearchParams): string => {
    const url = new URL(location.href);
    const query = next.size > 0 ? `/${part}?${next}` : '';
    url.hash = `#/record/${encodeURIComponent(id)}${query}`;
    return url.href;
  };
  let now = params;
  return {
    // A view that is drawn anew, of a record that grew, begins where the last one was.
    get params() {
      return now;
    },
    address,
    keep: (part, next) => {
      now = next;
      history.replaceState(null, '', address(part, next));
    },
  };
}

/** A record under its title; it is watched while it grows. */
async function recordPage(
  id: string,
  site: Page,
  params: URLSearchParams,
): Promise<{ element: HTMLElement; dispose(): void }> {
  const page = { ...site, place: placeOf(id, params) };
  const record = await page.source.load(id);
  // Narrowed by its schema: a fleet's id stands in those of all its nodes.
  const known = await page.source.list({
    text: id,
    ...(typeof record.schema === 'string' ? { schema: record.schema } : {}),
    limit: 5,
  });
  const entry: Entry | undefined =
    known.records.find((e) => e.id === (record.id ?? id)) ?? known.records[0];
  const body = h('div');
  let view: View = viewOf(record, page);
  body.append(view.element);
  const state = h('p', { class: 'state', role: 'status' });
  const show = (next: AnyRecord): void => {
    if (view.update) {
      view.update(next);
      return;
    }
    view.dispose();
    view = viewOf(next, page);
    fill(body, view.element);
  };
  const onChange = (change: Change): void => {
    if (change.kind === 'record') show(change.record);
    const reported = stateOf(change);
    // The same words again would be read out again.
    if (state.textContent !== reported) state.textContent = reported;
  };
  let stop = (): void => undefined;
  if (entry && !entry.complete && page.source.kind === 'site') {
    state.textContent = 'Running, or cut off: this page grows with it.';
    stop = page.source.watch(entry.id, onChange);
  }
  document.title = visible(`${entry?.title || id} · pinwise`);
  const element = h(
    'div',
    {},
    h('h1', {}, visible(entry?.title || id)),
    h('p', { class: 'muted' }, entry ? visible(originOf(entry)) : visible(id)),
    state,
    body,
    asText(record, id),
  );
  return {
    element,
    dispose: () => {
      stop();
      view.dispose();
    },
  };
}

/** How a terminal shows the record, where it has an id that a store can know. */
function asText(record: AnyRecord, id: string): HTMLElement | null {
  const { survey } = (record as TopologyRecord).measured ?? {};
  const own = parseSchema(record.schema)?.name.startsWith('fleet')
    ? /^[A-Za-z0-9][A-Za-z0-9._-]*$/
    : /^\d{8}-\d{6}-[0-9a-f]+$/;
  const known = [record.id, survey?.id, id].find(
    (word): word is string => typeof word === 'string' && own.test(word),
  );
  if (known === undefined) return null;
  return h(
    'footer',
    {},
    h('h2', {}, 'The same as text'),
    commandLine(`pinwise record show ${known}`),
  );
}

const originOf = (entry: Entry): string =>
  [
    entry.id,
    entry.time && `${minute(entry.time)} UTC`,
    entry.host,
    ...entry.tags.map((tag) => `#${tag}`),
  ]
    .filter(Boolean)
    .join(' · ');

function problem(error: unknown): HTMLElement {
  const reported =
    error instanceof PageError
      ? error
      : new PageError(
          `The record cannot be drawn: ${error instanceof Error ? error.message : String(error)}.`,
          'It may be damaged. pinwise record show prints it as text.',
        );
  return h(
    'div',
    { class: 'problem', role: 'alert' },
    h('h1', {}, 'Cannot be shown'),
    h('p', {}, visible(reported.message)),
    reported.hint ? h('p', { class: 'muted' }, visible(reported.hint)) : null,
  );
}

start();
