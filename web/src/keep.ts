// Pieces of a view that grows: rebuilt only if what they show changed, and then without taking
// focus, open details or a box's scrolling from the reader.

import { type ChartPlan, chart } from './chart';

import { h } from './dom';
import type { Part } from './view';

/** A place for a chart that may come later, while the record grows. */
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

/** A place whose content depends on a key alone. */
export function keyedSlot(): {
  element: HTMLElement;
  show(key: unknown, build: () => readonly (Node | null)[]): void;
} {
  const element = document.createElement('div');
  let shown: string | null = null;
  return {
    element,
    show(key, build) {
      const next = JSON.stringify(key) ?? '';
      if (next === shown) return;
      shown = next;
      const before = stateOf(element);
      element.replaceChildren(
        ...build().filter((node): node is Node => node !== null),
      );
      restore(element, before);
    },
  };
}

interface State {
  focused: number;
  open: boolean[];
  scrolled: number[];
}

const focusable = (element: HTMLElement): HTMLElement[] => [
  ...element.querySelectorAll<HTMLElement>(
    'a, button, input, select, summary, [tabindex]',
  ),
];
const details = (element: HTMLElement): HTMLDetailsElement[] => [
  ...element.querySelectorAll('details'),
];
const boxes = (element: HTMLElement): HTMLElement[] => [
  ...element.querySelectorAll<HTMLElement>('.scroll'),
];

function stateOf(element: HTMLElement): State {
  return {
    focused: focusable(element).findIndex(
      (one) => one === document.activeElement,
    ),
    open: details(element).map((one) => one.open),
    scrolled: boxes(element).map((one) => one.scrollLeft),
  };
}

function restore(element: HTMLElement, state: State): void {
  details(element).forEach(
    (one, at) => (one.open = state.open[at] ?? one.open),
  );
  boxes(element).forEach(
    (one, at) => (one.scrollLeft = state.scrolled[at] ?? 0),
  );
  if (state.focused >= 0)
    focusable(element)[state.focused]?.focus({ preventScroll: true });
}
