// Intervals in charts: a line with caps at its ends, which ECharts lacks.

import type { Theme } from './theme';

export interface Interval {
  /** Where the interval stands on the other axis. */
  at: number;
  low: number;
  high: number;
  colour: string;
  /** Thickness, pixels. */
  thickness?: number;
  dash?: boolean;
  /** Height of a box in place of the line, pixels: dots stay legible over it. */
  box?: number;
}

interface Api {
  coord(point: [number, number]): [number, number];
}

/** A series of intervals along x (`across` false) or y. */
export function intervalSeries(
  intervals: readonly Interval[],
  along: 'x' | 'y',
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  const point = (value: number, at: number): [number, number] =>
    along === 'x' ? [value, at] : [at, value];
  return {
    type: 'custom',
    silent: true,
    clip: true,
    tooltip: { show: false },
    data: intervals.flatMap((i) => [[...point(i.low, i.at)]]),
    renderItem: (params: { dataIndex: number }, api: Api) => {
      const interval = intervals[params.dataIndex];
      if (!interval) return undefined;
      return {
        type: 'group',
        children: lines(
          interval,
          api.coord(point(interval.low, interval.at)),
          api.coord(point(interval.high, interval.at)),
          along,
        ),
      };
    },
    z: 3,
    ...more,
  };
}

type Shape = {
  type: 'line' | 'rect';
  shape: Record<string, number>;
  style: Record<string, unknown>;
};

function lines(
  interval: Interval,
  low: [number, number],
  high: [number, number],
  along: 'x' | 'y',
): Shape[] {
  if (interval.box !== undefined && along === 'x')
    return [boxOf(interval, interval.box, low, high)];
  const style = {
    stroke: interval.colour,
    lineWidth: interval.thickness ?? 2,
    ...(interval.dash ? { lineDash: [4, 3] } : {}),
  };
  const cap = 4 + (interval.thickness ?? 2) / 2;
  const capAt = ([x, y]: [number, number]): Shape =>
    along === 'x'
      ? {
          type: 'line',
          shape: { x1: x, x2: x, y1: y - cap, y2: y + cap },
          style: { ...style, lineDash: null },
        }
      : {
          type: 'line',
          shape: { x1: x - cap, x2: x + cap, y1: y, y2: y },
          style: { ...style, lineDash: null },
        };
  return [
    {
      type: 'line',
      shape: { x1: low[0], y1: low[1], x2: high[0], y2: high[1] },
      style,
    },
    capAt(low),
    capAt(high),
  ];
}

const boxOf = (
  interval: Interval,
  height: number,
  low: [number, number],
  high: [number, number],
): Shape => ({
  type: 'rect',
  shape: { x: low[0], y: low[1] - height / 2, width: high[0] - low[0], height },
  style: {
    fill: interval.colour,
    fillOpacity: 0.16,
    stroke: interval.colour,
    strokeOpacity: 0.8,
    lineWidth: 1,
  },
});

/** Symbols and dashes that distinguish series without colour. */
export const SYMBOLS = [
  'circle',
  'rect',
  'triangle',
  'diamond',
  'emptyCircle',
  'emptyRect',
  'emptyTriangle',
  'emptyDiamond',
] as const;
export const DASHES: readonly ('solid' | 'dashed' | 'dotted' | number[])[] = [
  'solid',
  'dashed',
  'dotted',
  [8, 3, 2, 3],
  [12, 4],
  [2, 5],
  [8, 2, 2, 2, 2, 2],
  [5, 2],
];

/** A symbol with its colours. ECharts fills its own hollow ones with white, also on black. */
export function marker(
  symbol: string,
  colour: string,
  colours: Theme,
): { symbol: string; itemStyle: Record<string, unknown> } {
  if (!symbol.startsWith('empty'))
    return { symbol, itemStyle: { color: colour } };
  return {
    symbol: symbol.slice(5, 6).toLowerCase() + symbol.slice(6),
    itemStyle: {
      color: colours.background,
      borderColor: colour,
      borderWidth: 1.5,
    },
  };
}

/** How a series of that number looks: colours repeat later than dashes and shapes do. */
export function look(
  at: number,
  colours: Theme,
): {
  colour: string;
  symbol: string;
  dash: 'solid' | 'dashed' | 'dotted' | number[];
} {
  return {
    colour: colours.series[at % colours.series.length]!,
    symbol: SYMBOLS[at % SYMBOLS.length]!,
    dash: DASHES[
      (at + Math.floor(at / colours.series.length)) % DASHES.length
    ]!,
  };
}
