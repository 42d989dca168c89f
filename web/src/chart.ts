// Charts: each with a name for screen readers, a sentence that says what it
// shows, tooltips by pointer and keyboard, and the same figures as a table.

import { fill, h, visible } from './dom';
import { type Drawing, type Stop, drawPanels, swatch } from './draw';
import { type Panel, type Series, isRows, panelsOf } from './plot';
import { onPrint } from './print';
import { chartMenu } from './save';
import { type Table, tableElement } from './table';
import type { Part } from './view';
import { anchor } from './words';

export interface ChartPlan {
  /** Its name for screen readers, and its caption: "Ratio to os-default". */
  name: string;
  /** What the drawing shows, as a sentence for screen readers. */
  summary: string;
  /** A visible caption in place of the summary, if the drawing itself is clear. */
  caption?: string;
  /** The panel; or several below each other, for a width in pixels. */
  panel?: Panel;
  panels?: (width: number) => readonly Panel[];
  /** Names of series that are hidden at first. */
  hidden?: readonly string[];
  /** The figures in words. */
  table?: Table;
  /** Called if a stretch of the x axis is dragged over; other controls must offer the same. */
  select?: (from: number, to: number) => void;
}

/** Distance up to which a pointer selects a point, pixels; in a row there is no limit. */
const MAX_POINTER_DISTANCE = 60;

/** A chart as a figure; call `dispose` when it is removed. */
export function chart(
  plan: ChartPlan,
): Part & { redraw(next: ChartPlan): void } {
  let now = plan;
  let width = 0;
  const chosen = new Map<string, boolean>();
  const isHidden = (name: string): boolean =>
    chosen.get(name) ?? now.hidden?.includes(name) ?? false;
  const stage = h('div.stage', { role: 'img', tabIndex: 0 });
  const caption = h('figcaption');
  const legend = h('div.legend');
  const details = h('details.figures');
  const pointer = addTooltip(stage);
  const brush = addBrush(stage, (from, to) => now.select?.(from, to));
  let shown: { panels: readonly Panel[]; svgs: readonly SVGElement[] } = {
    panels: [],
    svgs: [],
  };
  const save = chartMenu(() => ({
    name: now.name,
    summary: now.summary,
    ...shown,
    measure: textMeasure(stage),
  }));
  const element = h(
    'figure.chart',
    { data: { chart: plan.name } },
    caption,
    legend,
    stage,
    pointer.spoken,
    h('div.below', details, save),
  );

  const figures = h('div');
  details.append(h('summary', 'The figures'), figures);
  const describe = (): void => {
    const [name, summary] = [visible(now.name), visible(now.summary)];
    stage.setAttribute('aria-label', `${name}. ${summary}`);
    caption.replaceChildren(
      h('strong', name),
      ' ',
      h('span.muted', now.caption ?? summary),
      anchor(now.name),
    );
    details.hidden = !now.table;
    // The summary stays, so that a redraw takes no reader's focus from it.
    figures.replaceChildren(...(now.table ? [tableElement(now.table)] : []));
  };
  const draw = (pixels = width): void => {
    if (pixels === 0) return;
    const all = panelsOf(now, pixels);
    keys.show(all.flatMap((panel) => panel.series));
    const panels = all.map((panel) => ({
      ...panel,
      series: panel.series.filter((s) => !s.name || !isHidden(s.name)),
    }));
    const drawn = drawPanels(panels, pixels, textMeasure(stage));
    shown = { panels, svgs: drawn.svgs };
    stage.dataset['rows'] = panels.every(({ y }) => isRows(y)) ? 'yes' : 'no';
    pointer.show(drawn);
    brush.show(now.select ? drawn.axis : null);
  };
  const keys = addLegend(legend, isHidden, (name) => {
    chosen.set(name, !isHidden(name));
    draw();
  });
  const size = new ResizeObserver(() => {
    const next = Math.floor(stage.clientWidth);
    if (next === 0 || next === width) return;
    width = next;
    draw();
  });
  size.observe(stage);
  const stop = onPrint(() => draw(Math.floor(stage.clientWidth)));
  describe();
  return {
    element,
    redraw(next) {
      now = next;
      describe();
      draw();
    },
    dispose() {
      stop();
      size.disconnect();
    },
  };
}

const ruler = document.createElement('canvas').getContext('2d');

/** Widths of texts in an element's font. */
function textMeasure(element: HTMLElement): (text: string) => number {
  const style = getComputedStyle(element);
  if (ruler) ruler.font = `${style.fontSize} ${style.fontFamily}`;
  return (text) => ruler?.measureText(text).width ?? text.length * 7;
}

/** Adds a legend: the names of series, each a button that shows and hides it. */
function addLegend(
  element: HTMLElement,
  isHidden: (name: string) => boolean,
  toggle: (name: string) => void,
): { show(series: readonly Series[]): void } {
  let shown = '';
  const buttons = new Map<string, HTMLElement>();
  return {
    show(all) {
      const named = new Map<string, Series>();
      for (const one of all)
        if (one.name && !named.has(one.name)) named.set(one.name, one);
      element.hidden = named.size < 2;
      const next = JSON.stringify(
        [...named.values()].map((s) => ({ ...s, points: [] })),
      );
      if (next !== shown) {
        buttons.clear();
        for (const [name, one] of named)
          buttons.set(
            name,
            h(
              'button.key',
              { title: name, onclick: () => toggle(name) },
              swatch(one),
              h('span', name),
            ),
          );
        element.replaceChildren(...buttons.values());
      }
      shown = next;
      for (const [name, button] of buttons)
        button.setAttribute('aria-pressed', String(!isHidden(name)));
    },
  };
}

/** Index of the nearest stop to a position: in rows the nearest of its row. */
function nearestStop(
  stops: readonly Stop[],
  x: number,
  y: number,
): number | null {
  let [best, least] = [null as number | null, Infinity];
  stops.forEach((stop, at) => {
    if (stop.row && (y < stop.row[0] || y > stop.row[1])) return;
    const far = Math.hypot(stop.x - x, stop.y - y);
    if (far < least && (stop.row || far < MAX_POINTER_DISTANCE))
      [best, least] = [at, far];
  });
  return best;
}

/** Adds a tooltip to a drawing and marks what it describes; arrow keys go from stop to stop. */
function addTooltip(stage: HTMLElement): {
  /** The tooltip's text for screen readers. */
  spoken: HTMLElement;
  show(drawing: Drawing): void;
} {
  const spoken = h('p.offscreen', { role: 'status', aria: { live: 'polite' } });
  const [tip, row, ring] = [
    h('div.tip', { hidden: true }),
    h('div.tip-row', { hidden: true }),
    h('div.tip-ring', { hidden: true }),
  ];
  let stops: readonly Stop[] = [];
  let at: number | null = null;
  const go = (next: number | null): void => {
    at = next;
    const stop = next === null ? undefined : stops[next];
    tip.hidden = ring.hidden = !stop;
    row.hidden = !stop?.row;
    stage.classList.toggle('can-pick', Boolean(stop?.pick));
    if (!stop) return;
    fill(tip, stop.tooltip);
    place(ring, stop.x, stop.y);
    if (stop.row) {
      place(row, 0, stop.row[0]);
      row.style.height = `${stop.row[1] - stop.row[0]}px`;
    }
    const left = stop.x + 14 + tip.offsetWidth > stage.clientWidth;
    place(
      tip,
      Math.max(0, left ? stop.x - 14 - tip.offsetWidth : stop.x + 14),
      Math.max(0, stop.y - tip.offsetHeight - 10),
    );
  };
  const follow = (event: PointerEvent): void => {
    const box = stage.getBoundingClientRect();
    const next = nearestStop(
      stops,
      event.clientX - box.left,
      event.clientY - box.top,
    );
    if (next !== at) go(next);
  };
  stage.addEventListener('pointermove', follow);
  stage.addEventListener('pointerdown', follow);
  // A finger leaves the stage at once: its tooltip stays until another place is touched.
  stage.addEventListener('pointerleave', (event) => {
    if (event.pointerType === 'mouse') go(null);
  });
  stage.addEventListener('blur', () => go(null));
  stage.addEventListener('click', () => {
    if (at !== null && !stage.dataset['dragged']) stops[at]?.pick?.();
  });
  stage.addEventListener('keydown', (event) => {
    const next = nextStop(event.key, at, stops.length);
    if (next === undefined) {
      if (event.key === 'Enter' && at !== null) stops[at]?.pick?.();
      return;
    }
    event.preventDefault();
    go(next);
    fill(spoken, next === null ? '' : stops[next]?.tooltip);
  });
  return {
    spoken,
    show(drawing) {
      stops = drawing.stops;
      stage.replaceChildren(row, ...drawing.svgs, ring, tip);
      go(at !== null && at < stops.length ? at : null);
    },
  };
}

/** Pixels that a pointer may move during a click. */
const MAX_CLICK_MOVE = 5;

/** Selects a stretch of the x axis by dragging with a mouse or pen; fingers scroll the page. */
function addBrush(
  stage: HTMLElement,
  select: (from: number, to: number) => void,
): { show(axis: Drawing['axis']): void } {
  const mark = h('div.brush', { hidden: true });
  let axis: Drawing['axis'] = null;
  let start: number | null = null;
  const along = (event: PointerEvent): number => {
    const x = event.clientX - stage.getBoundingClientRect().left;
    return Math.min(axis?.right ?? 0, Math.max(axis?.left ?? 0, x));
  };
  stage.addEventListener('pointerdown', (event) => {
    delete stage.dataset['dragged'];
    if (!axis || event.button !== 0 || event.pointerType === 'touch') return;
    start = along(event);
    stage.setPointerCapture(event.pointerId);
  });
  stage.addEventListener('pointermove', (event) => {
    if (start === null) return;
    const width = Math.abs(along(event) - start);
    if (width > MAX_CLICK_MOVE) stage.dataset['dragged'] = 'true';
    mark.hidden = width <= MAX_CLICK_MOVE;
    place(mark, Math.min(start, along(event)), 0);
    mark.style.width = `${width}px`;
  });
  const end = (event: PointerEvent, isDone: boolean): void => {
    const from = start;
    start = null;
    mark.hidden = true;
    if (from === null || !axis || !isDone || !stage.dataset['dragged']) return;
    const [low, high] = [from, along(event)].sort((a, b) => a - b);
    select(axis.at(low!), axis.at(high!));
  };
  stage.addEventListener('pointerup', (event) => end(event, true));
  stage.addEventListener('pointercancel', (event) => end(event, false));
  return {
    show(next) {
      axis = next;
      stage.classList.toggle('can-drag', axis !== null);
      if (axis) stage.append(mark);
    },
  };
}

function place(element: HTMLElement, x: number, y: number): void {
  element.style.left = `${x}px`;
  element.style.top = `${y}px`;
}

/** The stop that a key leads to; undefined if there is none. */
function nextStop(
  key: string,
  at: number | null,
  many: number,
): number | null | undefined {
  const last = many - 1;
  if (last < 0) return undefined;
  if (key === 'ArrowRight' || key === 'ArrowDown')
    return at === null ? 0 : Math.min(last, at + 1);
  if (key === 'ArrowLeft' || key === 'ArrowUp')
    return at === null ? last : Math.max(0, at - 1);
  if (key === 'Home') return 0;
  if (key === 'End') return last;
  return key === 'Escape' ? null : undefined;
}
