// The meaning of colours and marks of the timeline, and the help on keys.

import { h, svg } from '../../dom';
import { count, seconds } from '../../format';
import type { Theme } from '../../theme';
import { causeColour, Palette } from './colours';
import { CAUSE_WORDS } from './describe';
import { knowsOthers } from './others';
import type { Scene } from './scene';
import { type State, chosenColouring } from './state';

/** Maximum of CPUs and caches in the legend, and of threads, whose names are longer. */
const MAX_ENTRIES = 16;
const MAX_THREADS = 6;

const swatch = (colour: string, name: string): HTMLElement =>
  h(
    'span.class',
    svg(
      'svg',
      { width: 14, height: 14, 'aria-hidden': 'true' },
      svg('rect', { width: 14, height: 14, rx: 3, fill: colour }),
    ),
    ` ${name}`,
  );

/** A colour and its meaning. */
type Entry = readonly [colour: string, name: string];

/** The meaning of colours; empty if rows or their names already tell it. */
export function legendEntries(
  scene: Scene,
  state: Pick<State, 'rows' | 'colourBy'>,
  colours: Theme,
): Entry[] {
  if (!scene.slices) return [];
  const by = chosenColouring(state);
  if (by === 'cause')
    return [
      ...(scene.waits?.causes ?? []).map((cause, at): Entry => [
        causeColour(colours, at),
        CAUSE_WORDS[cause] ?? cause,
      ]),
      [causeColour(colours, -1), 'no wait before it is kept'],
    ];
  if (by === 'llc')
    return [...new Set(scene.llcOf.values())]
      .sort((a, b) => a - b)
      .map((llc) => [
        colours.series[llc % colours.series.length]!,
        `last-level cache ${llc}`,
      ]);
  if ((by === 'cpu') === (state.rows === 'cpus')) return [];
  const palette = new Palette(scene, state.rows, by, colours, null);
  return by === 'cpu'
    ? scene.cpus.map((cpu) => [palette.css(0, cpu), `CPU ${cpu}`])
    : scene.threads.map((at) => [palette.css(0, at), scene.threadName(at)]);
}

/** The colours' legend; the busiest threads come first. */
export function legend(
  scene: Scene,
  state: State,
  colours: Theme,
  hasHues: boolean,
): HTMLElement | null {
  const entries = hasHues ? legendEntries(scene, state, colours) : [];
  const marks =
    state.rows === 'cpus' ? cpuMarks(scene, state, colours, hasHues) : [];
  if (entries.length === 0 && marks.length === 0) return null;
  const most = chosenColouring(state) === 'thread' ? MAX_THREADS : MAX_ENTRIES;
  return h(
    'p.legend',
    ...entries.slice(0, most).map((entry) => swatch(...entry)),
    entries.length > most &&
      h('span.muted', `and ${entries.length - most} more`),
    ...marks,
  );
}

/** The marks that CPU rows of this trace have. */
function cpuMarks(
  scene: Scene,
  state: State,
  colours: Theme,
  hasHues: boolean,
): HTMLElement[] {
  const mark = (words: string): HTMLElement => h('span', words);
  return [
    scene.slices && chosenColouring(state) === 'thread'
      ? swatch(
          colours.series[0]!,
          `share of time${hasHues ? ', of narrow slices' : ''}`,
        )
      : null,
    scene.waits?.count ? swatch(colours.worse, 'strip above: queued') : null,
    knowsOthers(scene) ? mark('hatched: other programs') : null,
    scene.sharing?.count
      ? mark('hatched strip below: avoidable SMT sharing')
      : null,
  ].filter((one) => one !== null);
}

/** The list that explains all marks. */
export function marksKey(scene: Scene): HTMLElement {
  const list = (...lines: string[]): HTMLElement =>
    h('ul.marks', ...lines.map((line) => h('li', line)));
  if (!scene.slices)
    return list(
      'Solid: share of time with traced threads.',
      'Hatched above: with others.',
      'The record keeps shares of equal spans only: there were too many slices, or the source saw none.',
    );
  const shortest = seconds(scene.shortestWaitNs * 1e-9);
  return list(
    `${count(scene.slices.count, 'slice')}; of many in one pixel: height is the share of time, colour who had most of it.`,
    'CPU rows: colours and names are threads; the strip above is threads queued for the CPU, full at two and more; the strip below is the share of slices that came from another CPU; a hatched band marks SMT sharing that an idle core could have spared.',
    ...(knowsOthers(scene)
      ? [
          `CPU rows: hatched above is what other programs had of the time that traced threads left, known for spans of ${seconds(scene.spans!.lengthNs * 1e-9)}.`,
        ]
      : []),
    'Thread rows: colours and names are CPUs; thin hatching is waiting in a run queue; a short tick is a move within the core, a long one with a bar to another core.',
    ...(scene.waits
      ? [
          `Arrows of a followed thread: full lines are migrations, dashed ones wake-ups, from the CPU where it was queued. Waits below ${shortest} are not kept one by one, nor is who woke it.`,
        ]
      : [
          'Arrows of a followed thread are migrations; this source reports no waits and wake-ups.',
        ]),
  );
}

export const KEYS_HELP =
  'Drag, or Shift with arrows left and right, to select a span; z zooms to it, Escape clears. Arrows left and right or a and d move, up and down choose a row, plus and minus or w and s zoom, Home shows the whole trace, comma and full stop go to the slice before and after, Enter or a click follows the thread there, slash searches. Shift and drag to move; the wheel zooms once the timeline has the focus.';
