// Figures of a group as strips: the range of ordinary nodes, and the outliers, as ratios to each
// figure's median on one scale.

import { type Child, fill, h, svg, visible } from '../../dom';
import { quantity } from '../../format';
import { filterMap } from '../../lists';
import { positive } from '../../numbers';
import type { GroupFigure, Outlier } from './record';
import type { Range, StripEnds } from './shape';
import { place, stripEnds, stripWords, chooseTicks } from './shape';

const HEIGHT = 22;
const MIDDLE = HEIGHT / 2;

/** A figure with its outliers. */
export interface Strip {
  figure: GroupFigure;
  outliers: readonly Outlier[];
}

interface Dot {
  element: SVGElement;
  outlier: Outlier;
  row: number;
  at: number;
}

/** Called if a dot is chosen. */
type Choose = (outlier: Outlier) => void;

/** Strips below one axis; the dots are one stop for the keyboard, and arrows go from one to the
 * next. */
export function stripChart(
  strips: readonly Strip[],
  range: Range,
  choose: Choose | null,
): HTMLElement {
  // Screen readers read the names of the dots instead.
  const tip = h('div.strip-tip', { aria: { hidden: 'true' } });
  const dots: Dot[] = [];
  const rows = strips.map((strip, row) =>
    stripRow(strip, row, range, dots, choose !== null),
  );
  const drawing = h('div.strips', stripAxis(range, 'median'), ...rows);
  let focused = dots[0];
  focused?.element.setAttribute('tabindex', '0');
  const announce = (dot: Dot | undefined): void => {
    if (!dot) {
      tip.remove();
      return;
    }
    fill(
      tip,
      dot.outlier.sentence || `${dot.outlier.node}: ${dot.outlier.figure}`,
    );
    rows[dot.row]!.append(tip);
  };
  const focus = (dot: Dot | undefined): void => {
    if (!dot) return;
    focused?.element.setAttribute('tabindex', '-1');
    focused = dot;
    dot.element.setAttribute('tabindex', '0');
    dot.element.focus();
  };
  const dotOf = (event: Event): Dot | undefined => {
    const element = (event.target as Element).closest('.dot');
    return element ? dots.find((dot) => dot.element === element) : undefined;
  };
  for (const kind of ['focusin', 'pointerover'])
    drawing.addEventListener(kind, (event) => announce(dotOf(event)));
  for (const kind of ['focusout', 'pointerleave'])
    drawing.addEventListener(kind, () => announce(undefined));
  drawing.addEventListener('click', (event) => {
    const dot = dotOf(event);
    if (dot) choose?.(dot.outlier);
  });
  drawing.addEventListener('keydown', (event) => {
    const dot = dotOf(event);
    if (!dot) return;
    const goal = KEY_TARGETS[event.key];
    if (event.key === 'Escape') announce(undefined);
    else if (goal) focus(goal(dots, dot));
    else if (event.key === 'Enter' || event.key === ' ') choose?.(dot.outlier);
    else return;
    event.preventDefault();
  });
  return drawing;
}

/** Targets of keys; dots are ordered row by row, from the left. */
const KEY_TARGETS: Readonly<
  Record<string, (dots: readonly Dot[], from: Dot) => Dot | undefined>
> = {
  ArrowRight: (dots, from) => dots[dots.indexOf(from) + 1],
  ArrowLeft: (dots, from) => dots[dots.indexOf(from) - 1],
  ArrowDown: (dots, from) =>
    nearestInRow(
      dots.filter((dot) => dot.row > from.row),
      from,
    ),
  ArrowUp: (dots, from) =>
    nearestInRow(
      dots.filter((dot) => dot.row < from.row),
      from,
    ),
  Home: (dots) => dots[0],
  End: (dots) => dots.at(-1),
};

/** The horizontally nearest dot in the nearest row. */
function nearestInRow(dots: readonly Dot[], from: Dot): Dot | undefined {
  const distance = (dot: Dot): number =>
    Math.abs(dot.row - from.row) * 1000 + Math.abs(dot.at - from.at);
  return dots.reduce<Dot | undefined>(
    (best, dot) =>
      best === undefined || distance(dot) < distance(best) ? dot : best,
    undefined,
  );
}

/** The scale above strips; `last` heads the column of figures. */
export function stripAxis(range: Range, last: string): HTMLElement {
  const labels = chooseTicks(range).map((tick) =>
    svg(
      'text',
      {
        x: `${place(tick, range).at}%`,
        y: 15,
        'text-anchor': 'middle',
        'font-size': 12,
      },
      `×${tick}`,
    ),
  );
  return h(
    'div.strip.axis',
    { aria: { hidden: 'true' } },
    h('span'),
    stripSvg({ class: 'strip-axis' }, ...labels),
    h('span.number', last),
  );
}

function stripRow(
  { figure, outliers }: Strip,
  row: number,
  range: Range,
  dots: Dot[],
  isLink: boolean,
): HTMLElement {
  const words = stripWords(figure, outliers.length);
  const ends = stripEnds(figure);
  const name = visible(figure.label);
  const drawn =
    ends === null
      ? h('span.muted', 'No ratio to its median can be drawn.')
      : stripSvg(
          { role: 'group', 'aria-label': `${name}: ${words}` },
          ...rangeMarks(ends, range),
          ...outlierDots(outliers, row, range, dots, isLink),
        );
  const median = h(
    'span.number',
    { title: words },
    quantity(figure.median, figure.unit),
  );
  return h('div.strip', h('span.strip-name', name), drawn, median);
}

const stripSvg = (
  attributes: Record<string, string>,
  ...children: Child[]
): SVGElement =>
  svg('svg', { width: '100%', height: HEIGHT, ...attributes }, ...children);

/** Marks of the median, of the range of ordinary nodes, and of the whole range. */
function rangeMarks(
  { box: ordinary, reach }: StripEnds,
  range: Range,
): (SVGElement | null)[] {
  const at = (ratio: number): number => place(ratio, range).at;
  const share = (value: number): string => `${Math.round(value * 100) / 100}%`;
  const middle = at(1);
  return [
    reach &&
      svg('line', {
        class: 'reach',
        x1: share(at(reach[0])),
        x2: share(at(reach[1])),
        y1: MIDDLE,
        y2: MIDDLE,
      }),
    ordinary &&
      svg('rect', {
        class: 'ordinary',
        x: share(at(ordinary[0])),
        width: share(Math.max(0.4, at(ordinary[1]) - at(ordinary[0]))),
        y: MIDDLE - 6,
        height: 12,
      }),
    svg('line', {
      class: 'median',
      x1: share(middle),
      x2: share(middle),
      y1: MIDDLE - 8,
      y2: MIDDLE + 8,
    }),
  ];
}

/** A dot for each outlier; an arrow if it is beyond the strip. */
function outlierDots(
  outliers: readonly Outlier[],
  row: number,
  range: Range,
  dots: Dot[],
  isLink: boolean,
): SVGElement[] {
  const own: Dot[] = filterMap(outliers, (outlier) => {
    if (!positive(outlier.ratio)) return null;
    const { at, beyond } = place(outlier.ratio, range);
    const mark =
      beyond === 0
        ? svg('circle', { cx: `${at}%`, cy: MIDDLE, r: 4 })
        : svg(
            'text',
            {
              x: `${at}%`,
              y: MIDDLE + 5,
              'text-anchor': beyond < 0 ? 'start' : 'end',
            },
            beyond < 0 ? '◀' : '▶',
          );
    const element = svg(
      'g',
      {
        class: 'dot',
        role: isLink ? 'link' : 'img',
        tabindex: -1,
        'aria-label': outlier.sentence || outlier.node || 'a node',
      },
      mark,
    );
    return { element, outlier, row, at };
  });
  own.sort((a, b) => a.at - b.at);
  dots.push(...own);
  return own.map((dot) => dot.element);
}
