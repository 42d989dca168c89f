// The controls above the timeline: rows, colours, search, zoom, the link.

import { h, visible } from '../../dom';
import { count } from '../../format';
import { copyButton } from '../../words';
import { type ColourBy, COLOURINGS } from './colours';
import { AXIS_HEIGHT } from './frame';
import type { Rows } from './lanes';
import { panWindow, findThreads, zoomWindow } from './scene';
import type { Handle } from './state';
import {
  chosenColouring,
  followNextFound,
  scrollToCursor,
  zoomToSelection,
} from './state';

const COLOUR_WORDS: Readonly<Record<ColourBy, string>> = {
  thread: 'thread',
  cpu: 'CPU',
  llc: 'last-level cache',
  cause: 'cause of waiting',
};

export interface Toolbar {
  element: HTMLElement;
  /** The line on found and followed threads; apart, because beside the search it would move the
   * rows. */
  found: HTMLElement;
  chooseRows(rows: Rows): void;
  focusSearch(): void;
  sync(): void;
}

/** `link` returns the address of the state; null if it has none. */
export function toolbar(handle: Handle, link: (() => string) | null): Toolbar {
  const { scene, state } = handle;
  const rows = h(
    'select',
    h('option', { value: 'cpus' }, 'CPUs'),
    h('option', { value: 'threads' }, 'threads'),
  );
  const chooseRows = (next: Rows): void => {
    if (!scene.slices || state.rows === next) return;
    state.rows = next;
    state.cursor.row = 0;
    handle.scroller.scrollTop = 0;
    handle.sync();
    handle.layout();
    handle.refresh();
  };
  rows.addEventListener('change', () => chooseRows(rows.value as Rows));
  const colours = h(
    'select',
    ...COLOURINGS.map((by) => h('option', { value: by }, COLOUR_WORDS[by])),
  );
  colours.addEventListener('change', () => {
    state.colourBy = colours.value as ColourBy;
    handle.sync();
    handle.refresh();
  });
  const search = finder(handle);
  const sync = (): void => {
    rows.value = state.rows;
    colours.value = chosenColouring(state);
    for (const option of colours.options) {
      const isMissing =
        (option.value === 'llc' && scene.llcOf.size === 0) ||
        (option.value === 'cause' && !scene.waits);
      option.disabled = isMissing;
      const words = COLOUR_WORDS[option.value as ColourBy];
      option.textContent = isMissing ? `${words} (unknown)` : words;
    }
    search.sync();
  };
  sync();
  const element = h(
    'div.tools',
    { role: 'group', aria: { label: 'Timeline' } },
    scene.slices ? h('label', h('span', 'Rows '), rows) : null,
    scene.slices ? h('label', h('span', 'Colour by '), colours) : null,
    ...zoomButtons(handle),
  );
  const more = h(
    'button.more-tools',
    { aria: { expanded: 'false' }, onclick: () => open() },
    'More',
  );
  const open = (is = !element.classList.contains('open')): void => {
    element.classList.toggle('open', is);
    more.setAttribute('aria-expanded', String(is));
  };
  element.append(
    more,
    h(
      'div.rest',
      scene.slices ? search.element : null,
      ...moveButtons(handle),
      link && copyButton(link, 'the address of what is shown', 'Copy link'),
    ),
  );
  return {
    element,
    found: search.found,
    chooseRows,
    focusSearch: () => {
      open(true);
      search.focus();
    },
    sync,
  };
}

/** A button that changes the visible part; `sign` replaces a long name. */
const viewButton = (
  handle: Handle,
  name: string,
  act: () => void,
  sign = name,
): HTMLElement =>
  h(
    'button',
    {
      title: sign === name ? '' : name,
      aria: { label: name },
      onclick: () => {
        act();
        handle.refresh();
      },
    },
    sign,
  );

function zoomButtons(handle: Handle): HTMLElement[] {
  const { scene, state } = handle;
  const zoom = (factor: number): void => {
    const middle = (state.window.from + state.window.to) / 2;
    state.window = zoomWindow(state.window, factor, middle, scene.span);
  };
  return [
    viewButton(handle, 'Zoom in', () => zoom(0.5), '+'),
    viewButton(handle, 'Zoom out', () => zoom(2), '−'),
  ];
}

function moveButtons(handle: Handle): HTMLElement[] {
  const { scene, state } = handle;
  const pan = (share: number): void => {
    state.window = panWindow(state.window, share, scene.span);
  };
  const whole = (): void => {
    state.window = { from: 0, to: scene.span };
  };
  return [
    viewButton(handle, 'Earlier', () => pan(-0.5), '←'),
    viewButton(handle, 'Later', () => pan(0.5), '→'),
    viewButton(handle, 'Whole trace', whole, 'Whole'),
    viewButton(handle, 'Select what is seen', () => {
      state.selection = { ...state.window };
      handle.select();
    }),
  ];
}

/** The search for threads; Enter goes to the next found one. */
function finder(handle: Handle): {
  element: HTMLElement;
  found: HTMLElement;
  focus(): void;
  sync(): void;
} {
  const { scene, state } = handle;
  const input = h('input', { type: 'search', placeholder: 'Find …' });
  const found = h('p.found.muted', { role: 'status' });
  const sync = (): void => {
    if (input.value !== state.find) input.value = state.find;
    const place =
      state.thread === null ? undefined : scene.placeOf.get(state.thread);
    const followed =
      place === undefined ? [] : [`following ${scene.threadName(place)}`];
    const named = state.find.trim()
      ? [
          `${findThreads(scene, state.find).length} of ${count(scene.threads.length, 'thread')}`,
        ]
      : [];
    found.textContent = visible([...named, ...followed].join(', '));
  };
  input.addEventListener('input', () => {
    state.find = input.value;
    sync();
    handle.refresh();
  });
  input.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter') return;
    event.preventDefault();
    followNextFound(handle);
    scrollToCursor(handle, AXIS_HEIGHT);
    handle.refresh();
  });
  return {
    element: h(
      'label.finder',
      h('span.offscreen', 'Find thread by name or number'),
      input,
    ),
    found,
    focus: () => input.focus(),
    sync,
  };
}

/** The buttons of a selection. */
export function selectionTools(handle: Handle): HTMLElement {
  const { state } = handle;
  const button = (name: string, act: () => void): HTMLElement =>
    h('button', { onclick: act }, name);
  return h(
    'p.tools',
    button('Zoom to the selection', () => {
      zoomToSelection(handle);
      handle.refresh();
    }),
    button('Clear the selection', () => {
      state.selection = null;
      state.anchor = null;
      handle.select();
      handle.refresh();
      handle.canvas.focus();
    }),
  );
}
