// What colours and marks of the timeline mean, and what keys do.

import { h, svg, visible } from '../../dom';
import { count, seconds } from '../../format';
import type { Theme } from '../../theme';
import { causeColour } from './colours';
import { CAUSE_WORDS } from './describe';
import type { Scene } from './scene';
import type { State } from './state';
import { colourOf } from './state';

/** Last-level caches named at most. */
const MOST_NAMED = 16;

const swatch = (colour: string, name: string): HTMLElement =>
  h(
    'span',
    { class: 'class' },
    svg(
      'svg',
      { width: 14, height: 14, 'aria-hidden': 'true' },
      svg('rect', { width: 14, height: 14, rx: 3, fill: colour }),
    ),
    ` ${visible(name)}`,
  );

/** The colours' legend; for threads and CPUs their names are the cue. */
export function legend(
  scene: Scene,
  state: State,
  colours: Theme,
): HTMLElement | null {
  const by = scene.slices ? colourOf(state) : null;
  if (by === 'cause' && scene.waits)
    return h(
      'p',
      { class: 'legend' },
      ...scene.waits.causes.map((cause, at) =>
        swatch(causeColour(colours, at), CAUSE_WORDS[cause] ?? cause),
      ),
      swatch(causeColour(colours, -1), 'no wait before it is kept'),
    );
  if (by !== 'llc') return null;
  const caches = [...new Set(scene.llcOf.values())].sort((a, b) => a - b);
  return h(
    'p',
    { class: 'legend' },
    ...caches
      .slice(0, MOST_NAMED)
      .map((llc) =>
        swatch(
          colours.series[llc % colours.series.length]!,
          `last-level cache ${llc}`,
        ),
      ),
    caches.length > MOST_NAMED
      ? h('span', { class: 'muted' }, `and ${caches.length - MOST_NAMED} more`)
      : null,
  );
}

/** What the marks mean. */
export function marksKey(scene: Scene): HTMLElement {
  const list = (...lines: string[]): HTMLElement =>
    h('ul', { class: 'key' }, ...lines.map((line) => h('li', {}, line)));
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

export const KEYS =
  'Drag, or Shift with arrows left and right, to select a span; z zooms to it, Escape clears. Arrows left and right move, up and down choose a row, plus and minus zoom, Home shows the whole trace, comma and full stop go to the slice before and after, Enter or a click follows the thread there, slash searches. Shift and drag to move; the wheel zooms once the timeline has the focus.';
