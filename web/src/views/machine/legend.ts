// Legends of colours: a scale with labelled ends, or classes by name.

import { h, svg } from '../../dom';
import { quantity } from '../../format';
import { colourAt, inkOn } from '../../colour-scale';
import type { Theme } from '../../theme';
import type { Colouring } from './figures';

const STEPS = 32;
/** Maximum of named classes; CPUs show their class's name anyway. */
const MAX_CLASSES = 16;

/** A scale's colours from its low to its high end; one figure has no scale. */
export function scaleLegend(
  colours: Theme,
  low: string,
  high: string,
  name = '',
): HTMLElement {
  const title = name && h('span', name);
  if (low === high) return h('p.legend', title, h('span', low));
  const strip = svg('svg', {
    width: 160,
    height: 12,
    'aria-hidden': 'true',
    class: 'ramp',
  });
  for (let at = 0; at < STEPS; at += 1) {
    strip.append(
      svg('rect', {
        x: (at * 160) / STEPS,
        y: 0,
        width: 160 / STEPS + 0.5,
        height: 12,
        fill: colourAt(colours.scale, at / (STEPS - 1)),
      }),
    );
  }
  return h('p.legend', title, h('span', low), strip, h('span', high));
}

/** The colour of a class. If there are more classes than colours, colours repeat, and names
 * distinguish them. */
export const classColour = (colours: Theme, at: number): string =>
  colours.series[at % colours.series.length]!;

/** The legend of a drawing's colouring. */
export function colouringLegend(
  colouring: Colouring,
  colours: Theme,
): HTMLElement {
  if (colouring.kind === 'scale') {
    if (colouring.values.size === 0)
      return h(
        'p.legend.muted',
        'Not measured for this CPU: choose another one.',
      );
    return scaleLegend(
      colours,
      quantity(colouring.low, colouring.unit),
      quantity(colouring.high, colouring.unit),
      colouring.name,
    );
  }
  const shown = colouring.names.slice(0, MAX_CLASSES).map((name, at) => {
    const colour = classColour(colours, at);
    const swatch = svg(
      'svg',
      { width: 22, height: 16, 'aria-hidden': 'true' },
      svg('rect', { width: 22, height: 16, rx: 3, fill: colour }),
    );
    // A short name is in its colour.
    const isInside = name.length <= 2;
    if (isInside)
      swatch.append(
        svg(
          'text',
          {
            x: 11,
            y: 12,
            'text-anchor': 'middle',
            'font-size': 12,
            fill: inkOn(colour),
          },
          name,
        ),
      );
    return h(
      'span.class',
      swatch,
      h('span', { class: isInside ? 'offscreen' : '' }, ` ${name}`),
    );
  });
  const more = colouring.names.length - shown.length;
  return h(
    'p.legend',
    ...shown,
    more > 0 && h('span.muted', `and ${more} more`),
  );
}
