// Charts with a named row for each thing: the axis of names, and how wide it may be.

import { axis } from './chart';
import { visible } from './dom';
import type { Theme } from './theme';

/** Pixels that names at the left may take on this screen. */
export function nameWidth(): number {
  return Math.round(
    Math.min(260, Math.max(76, document.documentElement.clientWidth * 0.24)),
  );
}

/** Ticks that fit along a chart's x axis. */
export function ticksThatFit(pixelsEach = 64): number {
  return Math.max(
    3,
    Math.floor(
      Math.min(1100, document.documentElement.clientWidth - nameWidth()) /
        pixelsEach,
    ),
  );
}

/** An axis of rows from the top: row 0 first. Values between rows stay free for dots. */
export function rowAxis(
  colours: Theme,
  names: readonly string[],
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  return axis(colours, {
    type: 'value',
    min: -0.5,
    max: names.length - 0.5,
    inverse: true,
    axisTick: { show: false, customValues: names.map((_, at) => at) },
    axisLine: { show: false },
    splitLine: { show: false },
    axisLabel: {
      color: colours.text,
      customValues: names.map((_, at) => at),
      formatter: (at: number) => visible(names[at] ?? ''),
      width: nameWidth(),
      overflow: 'truncate',
      hideOverlap: false,
    },
    ...more,
  });
}
