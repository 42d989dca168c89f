// The page: one header, one view at a time, chosen by the address's hash.

import './style.css';

import { type Child, fill, h, visible } from './dom';
import { minute } from './format';
import { toMarkdown } from './markdown';
import { describeState } from './live';
import { openSource } from './opening';
import type { DiffRecord, ProfileDiff } from './records';
import { parseSchema } from './schema';
import type { AnyRecord, Change, Entry, Source } from './source';
import { PageError } from './source';
import { type ThemeChoice, chooseTheme } from './theme';
import type { Page, Place, View } from './view';
import { viewOf } from './views';
import { startPrinting } from './print';
import { download, fileName, saveMenu } from './save';
import { commandLine, copy, copyButton, shellWords, withBreaks } from './words';
import { fleetView } from './views/fleet/view';
import { historyView } from './views/history/view';

const main = h('main', { id: 'main', tabIndex: -1 });
const announcer = h('p.offscreen', {
  role: 'status',
  aria: { live: 'polite' },
});
let shown: { dispose(): void } | null = null;
let routeCount = 0;

async function start(): Promise<void> {
  chooseTheme('system');
  startPrinting();
  const root = document.getElementById('page')!;
  let source: Source;
  try {
    const data = document.getElementById('pinwise-data')?.textContent ?? '';
    source = await openSource(data, document.baseURI);
  } catch (error) {
    fill(root, main);
    fill(main, problemElement(error));
    return;
  }
  const page: Page = {
    source,
    go: (hash) => {
      location.hash = hash;
    },
    announce: (sentence) => {
      announcer.textContent = sentence;
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
    header(),
    main,
    announcer,
  );
  addEventListener('hashchange', () => void route(page));
  void route(page);
}

function header(): HTMLElement {
  const themes: [ThemeChoice, string][] = [
    ['system', 'system'],
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
    'header.bar',
    h('a', { href: '#/', class: 'name' }, 'pinwise'),
    h(
      'nav',
      { aria: { label: 'Views' } },
      h('a', { href: '#/history' }, 'Records'),
      h('a', { href: '#/fleet' }, 'Fleet'),
    ),
    h('label.theme', h('span', 'Theme '), select),
  );
}

/** "#/record/ID", "#/record/ID/timeline?from=…", "#/history?host=…", "#/diff/A/B", "#/fleet"; "#/"
 * is the one record of a report, what changed between its two, or the history. */
async function route(page: Page): Promise<void> {
  const own = (routeCount += 1);
  shown?.dispose();
  shown = null;
  fill(main, h('p.muted', { aria: { busy: 'true' } }, 'Loading …'));
  markCurrent();
  let part: HTMLElement | null = null;
  try {
    const view = await openView(page);
    if (own !== routeCount) {
      view.dispose();
      return;
    }
    shown = view;
    fill(main, view.element);
    part = findNamedPart(view.element);
  } catch (error) {
    if (own !== routeCount) return;
    document.title = 'Cannot be shown · pinwise';
    fill(main, problemElement(error));
  }
  if (part) focusPart(part);
  else if (own > 1) focusHeading(page);
}

/** Moves the keyboard focus, and screen readers, to the heading of a new view. */
function focusHeading(page: Page): void {
  scrollTo(0, 0);
  const heading = main.querySelector('h1');
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  page.announce(document.title);
}

/** Finds the part that the address names, as in "#/record/ID/findings". */
function findNamedPart(element: HTMLElement): HTMLElement | null {
  const wanted = addressParts().parts[2];
  const all = element.querySelectorAll<HTMLElement>('.anchor');
  const found = [...all].find((one) => one.dataset['part'] === wanted);
  return found?.closest<HTMLElement>('section, figure') ?? null;
}

/** Scrolls to a part and focuses it, once the charts above it have their size. */
function focusPart(part: HTMLElement): void {
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      part.scrollIntoView();
      const target = part.querySelector<HTMLElement>('h2, .stage') ?? part;
      if (target.tabIndex < 0) target.tabIndex = -1;
      target.focus({ preventScroll: true });
    }),
  );
}

/** Marks the current view in the header. */
function markCurrent(): void {
  const at = addressParts().parts[0] ?? '';
  for (const link of document.querySelectorAll('.bar nav a')) {
    if (link.getAttribute('href') === `#/${at}`)
      link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}

async function openView(
  page: Page,
): Promise<{ element: HTMLElement; dispose(): void }> {
  const { parts, params } = addressParts();
  if (parts[0] === 'record' && parts[1])
    return recordPage(parts[1], page, params);
  if (parts[0] === 'diff' && parts[1] && parts[2])
    return diffPage(parts[1], parts[2], page);
  if (parts[0] === 'fleet') return fleetView(page);
  if (parts.length > 0 && parts[0] !== 'history') {
    throw new PageError(
      `This page has no '${parts.join('/')}'.`,
      'All records are under Records.',
    );
  }
  if (parts.length === 0 && page.source.kind === 'file') {
    const listing = await page.source.list({ limit: 2 });
    const [a, b] = listing.records.map(({ id }) => id);
    if (a && listing.total === 1) return recordPage(a, page, params);
    if (a && b && listing.total === 2)
      for (const [old, now] of [
        [b, a],
        [a, b],
      ] as const)
        if (page.source.canDiff(old, now)) return diffPage(old, now, page);
  }
  return historyView(params, page);
}

function addressParts(): { parts: string[]; params: URLSearchParams } {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  return {
    parts: path.split('/').filter(Boolean).map(decodePart),
    params: new URLSearchParams(query),
  };
}

function decodePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A page that compares two records. */
async function diffPage(
  a: string,
  b: string,
  page: Page,
): Promise<{ element: HTMLElement; dispose(): void }> {
  const record = await page.source.diff(a, b);
  const view = viewOf(record, page);
  document.title = 'Two records compared · pinwise';
  const element = h(
    'div',
    h('h1', ...titleLines(record, 'Two records compared')),
    view.element,
    h(
      'footer',
      h('h2', 'The same as text'),
      commandLine(`pinwise record diff ${shellWords([a, b])}`),
    ),
  );
  return { element, dispose: () => view.dispose() };
}

/** The place of a record in the address. */
function placeOf(id: string, params: URLSearchParams): Place {
  const address = (part: string, next: URLSearchParams): string => {
    const url = new URL(location.href);
    const path = part ? `/${part}` : '';
    const query = next.size > 0 ? `?${next}` : '';
    url.hash = `#/record/${encodeURIComponent(id)}${path}${query}`;
    return url.href;
  };
  let now = params;
  return {
    // A view that is redrawn because its record grew begins where the last one was.
    get params() {
      return now;
    },
    address,
    keep: (part, next) => {
      now = next;
      history.replaceState(null, '', address(next.size > 0 ? part : '', next));
    },
  };
}

/** A record under its title; it is watched while it grows. */
async function recordPage(
  id: string,
  site: Page,
  params: URLSearchParams,
): Promise<{ element: HTMLElement; dispose(): void }> {
  const place = placeOf(id, params);
  const page = { ...site, place };
  const record = await page.source.load(id);
  // Narrowed by its schema: the ids of all its nodes contain a fleet's id.
  const known = await page.source.list({
    text: id,
    ...(typeof record.schema === 'string' ? { schema: record.schema } : {}),
    limit: 5,
  });
  const entry: Entry | undefined =
    known.records.find((e) => e.id === (record.id ?? id)) ?? known.records[0];
  const body = h('div');
  let now = record;
  let view: View = viewOf(record, page);
  body.append(view.element);
  const state = h('p.state', { role: 'status' });
  const show = (next: AnyRecord): void => {
    now = next;
    if (view.update) {
      view.update(next);
      return;
    }
    view.dispose();
    view = viewOf(next, page);
    fill(body, view.element);
    applyChoices(body, place);
  };
  const onChange = (change: Change): void => {
    view.grows?.(change.kind === 'record');
    if (change.kind === 'record') show(change.record);
    const reported = describeState(change);
    // The same words would be read out again.
    if (state.textContent !== reported) state.textContent = reported;
  };
  let stop = (): void => undefined;
  if (entry && !entry.complete && page.source.kind === 'site') {
    state.textContent = 'Running, or cut off: this page grows with it.';
    stop = page.source.watch(entry.id, onChange);
  }
  const title = entry?.title || id;
  document.title = visible(`${title} · pinwise`);
  keepChoices(body, place);
  const element = h(
    'div.record',
    ...titleParts(record, title, entry ? originOf(entry) : id),
    recordTools(id, () => now, entry, page),
    state,
    body,
    textFooter(record, id),
  );
  return {
    element,
    dispose: () => {
      stop();
      view.dispose();
    },
  };
}

/** The title and the origin, which are cut on a screen, and the button that shows all of them. */
function titleParts(
  record: AnyRecord,
  title: string,
  origin: string,
): HTMLElement[] {
  const heading = h('h1.cut', ...titleLines(record, title));
  const parts = [heading, h('span.cut', ...withBreaks(origin))];
  const more = h(
    'button',
    {
      type: 'button',
      hidden: true,
      title: 'Show the whole title',
      onclick: () => parts.forEach((part) => part.classList.remove('cut')),
    },
    'Unfold',
  );
  const observer = new ResizeObserver(() => {
    more.hidden = parts.every(
      (part) => part.scrollHeight <= part.clientHeight + 1,
    );
  });
  parts.forEach((part) => observer.observe(part));
  return [heading, h('p.muted.origin', parts[1], more)];
}

/** The title; of two records of different ones, a line for each. */
function titleLines(record: AnyRecord, title: string): Child[] {
  const { a, b } = record as Partial<DiffRecord>;
  const { before = a, after = b } = record as ProfileDiff;
  if (before?.title && after?.title)
    return before.title === after.title
      ? withBreaks(`${before.title}, before and after`)
      : [
          ...withBreaks(`${before.title} →`),
          h('br'),
          ...withBreaks(after.title),
        ];
  return withBreaks(title);
}

/** Keeps named choices in the address, and applies those of the address. */
function keepChoices(body: HTMLElement, place: Place): void {
  applyChoices(body, place);
  body.addEventListener('change', ({ target }) => {
    if (!(target instanceof HTMLSelectElement) || !target.name) return;
    const next = new URLSearchParams(place.params);
    if (target.value) next.set(target.name, target.value);
    else next.delete(target.name);
    place.keep('', next);
  });
  body.addEventListener('click', (event) => {
    const button = (event.target as Element).closest<HTMLElement>('.anchor');
    if (!button) return;
    const link = place.address(button.dataset['part'] ?? '', place.params);
    void copy(link).then((done) => {
      button.textContent = done ? '✓ link copied' : link;
      setTimeout(() => (button.textContent = ''), 3000);
    });
  });
}

/** Sets the named selects of a view to what the address says. */
function applyChoices(body: HTMLElement, place: Place): void {
  for (const select of body.querySelectorAll<HTMLSelectElement>(
    'select[name]',
  )) {
    const value = place.params.get(select.name);
    if (value === null || value === select.value) continue;
    if (![...select.options].some((option) => option.value === value)) continue;
    select.value = value;
    select.dispatchEvent(new Event('change'));
  }
}

/** Buttons that copy and save a record: a link to it, its JSON, its summary. */
function recordTools(
  id: string,
  record: () => AnyRecord,
  entry: Entry | undefined,
  page: Page & { place: Place },
): HTMLElement {
  const markdown = (): string => toMarkdown(record(), entry);
  const json = async (): Promise<void> => {
    try {
      const text = await page.source.text(id);
      download(
        new Blob([text], { type: 'application/json' }),
        fileName(id, 'json'),
      );
    } catch (error) {
      page.announce(error instanceof Error ? error.message : String(error));
    }
  };
  return h(
    'div.record-tools',
    copyButton(
      () => page.place.address('', page.place.params),
      'the address of this record',
      'Copy link',
    ),
    copyButton(markdown, 'the summary', 'Copy as Markdown'),
    saveMenu('the record', [
      ['JSON', () => void json()],
      [
        'Markdown',
        () =>
          download(
            new Blob([markdown()], { type: 'text/markdown' }),
            fileName(id, 'md'),
          ),
      ],
    ]),
  );
}

/** The command that shows the record in a terminal, if a store can have its id. */
function textFooter(record: AnyRecord, id: string): HTMLElement | null {
  const own = parseSchema(record.schema)?.name.startsWith('fleet')
    ? /^[A-Za-z0-9][A-Za-z0-9._-]*$/
    : /^\d{8}-\d{6}-[0-9a-f]+$/;
  const known = [record.id, id].find(
    (word): word is string => typeof word === 'string' && own.test(word),
  );
  if (known === undefined)
    return h(
      'footer',
      h('p.muted', 'Records of this kind are not stored: keep the file.'),
    );
  return h(
    'footer',
    h('h2', 'The same as text'),
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

function problemElement(error: unknown): HTMLElement {
  const reported =
    error instanceof PageError
      ? error
      : new PageError(
          `The record cannot be drawn: ${error instanceof Error ? error.message : String(error)}.`,
          'It may be damaged. pinwise record show prints it as text.',
        );
  return h(
    'div.problem',
    { role: 'alert' },
    h('h1', 'Cannot be shown'),
    h('p', reported.message),
    reported.hint && h('p.muted', reported.hint),
    h(
      'p',
      h('a', { href: '#/history' }, 'All records'),
      ' · ',
      h('button', { onclick: () => location.reload() }, 'Reload'),
    ),
  );
}

void start();
