// Parts of a view that grows. A part is rebuilt only if its content changed, and keeps the reader's
// focus, open details and scroll positions.

import { type ChartPlan, chart } from './chart';
import { type Absent, h } from './dom';
import type { AnyRecord } from './source';
import type { Page, Part, View } from './view';

/** A place for a chart that may appear later, while the record grows. */
export function chartSlot(
  title: string,
): Part & { show(plan: ChartPlan | null): void } {
  // The chart's own caption is visible.
  const element = h(
    'section',
    { aria: { label: title } },
    h('h2.offscreen', title),
  );
  element.hidden = true;
  let held: ReturnType<typeof chart> | null = null;
  return {
    element,
    show(plan) {
      element.hidden = plan === null;
      if (plan === null) return;
      if (held) held.redraw(plan);
      else element.append((held = chart(plan)).element);
    },
    dispose: () => held?.dispose(),
  };
}

/** A part of a view that grows. */
export interface Growing<Now> {
  element: HTMLElement;
  show(now: Now): void;
  dispose?(): void;
}

type Build<Now> = (now: Now) => readonly (Node | Absent)[];

/** A part that is rebuilt if its key has changed or, without a key, its HTML. */
export function rebuiltOnChange<Now>(
  build: Build<Now>,
  keyOf?: (now: Now) => unknown,
): Growing<Now> {
  const element = h('div');
  let shown: string | null = null;
  return {
    element,
    show(now) {
      const key = keyOf && (JSON.stringify(keyOf(now)) ?? '');
      if (key !== undefined && key === shown) return;
      const next = h('div', ...build(now));
      if ((key ?? next.innerHTML) === shown) return;
      shown = key ?? next.innerHTML;
      const before = readState(element);
      element.replaceChildren(...next.childNodes);
      restoreState(element, before);
    },
  };
}

/** A part with a chart that may appear later. */
export function chartPart<Now>(
  title: string,
  plan: (now: Now) => ChartPlan | null,
): Growing<Now> {
  const slot = chartSlot(title);
  return { ...slot, show: (now) => slot.show(plan(now)) };
}

/** Joins parts within an element. */
export function joinParts<Now>(
  selector: Parameters<typeof h>[0],
  parts: readonly Growing<Now>[],
): Growing<Now> {
  return {
    element: h(selector, ...parts.map((part) => part.element)),
    show: (now) => parts.forEach((part) => part.show(now)),
    dispose: () => parts.forEach((part) => part.dispose?.()),
  };
}

/** The view of a record that grows; `ended` is what to announce at its end, null before. */
export function growingView<Now>(
  record: AnyRecord,
  { element, show, dispose }: Growing<Now>,
  read: (record: AnyRecord) => Now,
  ended: (now: Now) => string | null = () => null,
  page?: Page,
): View & { update(record: AnyRecord): void } {
  let before: string | null = '';
  const update = (next: AnyRecord): void => {
    const now = read(next);
    show(now);
    const words = ended(now);
    if (before === null && words !== null) page?.announce(words);
    before = words;
  };
  update(record);
  return { element, update, dispose: () => dispose?.() };
}

interface State {
  focused: number;
  open: boolean[];
  scrolled: number[];
}

const focusableIn = (element: HTMLElement): HTMLElement[] => [
  ...element.querySelectorAll<HTMLElement>(
    'a, button, input, select, summary, [tabindex]',
  ),
];
const detailsIn = (element: HTMLElement): HTMLDetailsElement[] => [
  ...element.querySelectorAll('details'),
];
const scrollBoxes = (element: HTMLElement): HTMLElement[] => [
  ...element.querySelectorAll<HTMLElement>('.scroll'),
];

function readState(element: HTMLElement): State {
  return {
    focused: focusableIn(element).findIndex(
      (one) => one === document.activeElement,
    ),
    open: detailsIn(element).map((one) => one.open),
    scrolled: scrollBoxes(element).map((one) => one.scrollLeft),
  };
}

function restoreState(element: HTMLElement, state: State): void {
  detailsIn(element).forEach(
    (one, at) => (one.open = state.open[at] ?? one.open),
  );
  scrollBoxes(element).forEach(
    (one, at) => (one.scrollLeft = state.scrolled[at] ?? 0),
  );
  if (state.focused >= 0)
    focusableIn(element)[state.focused]?.focus({ preventScroll: true });
}
