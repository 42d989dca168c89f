// Draws panels as SVG by marks of Observable Plot: named rows with intervals,
// dots, lines and steps, scatter, grids.

import type { Markish, PlotOptions } from '@observablehq/plot';
import {
  axisX,
  axisY,
  dot,
  gridX,
  gridY,
  line,
  plot,
  rect,
  ruleX,
  ruleY,
  text,
} from '@observablehq/plot';

import { visible } from './dom';
import { fitNames, fitTitle, shiftInside, truncate } from './labels';
import { filterMap } from './lists';
import { finite } from './numbers';
import type { Axis, Measure, Panel, Point, Rule, Series } from './plot';
import {
  COLOURS,
  endsOf,
  isRows,
  labelOf,
  tickLabels,
  ticksOf,
  ticksThatFit,
  valuesOf,
} from './plot';

/** A point at which a tooltip can appear, in pixels of the drawing. */
export interface Stop {
  x: number;
  y: number;
  /** Top and bottom of its row, if it has one. */
  row: readonly [number, number] | null;
  tooltip: string;
  pick?: () => void;
}

export interface Drawing {
  svgs: SVGElement[];
  stops: Stop[];
  /** Ends of the first panel's x axis, pixels, and the label of a position on it. */
  axis: { left: number; right: number; at(x: number): number } | null;
}

/** Room for the title and labels of the axes, pixels. */
const TOP_MARGIN = 26;
const BOTTOM_MARGIN = 48;

/** The margin of an axis; labels of times have a second line, such as the day. */
const bottomMargin = ({ type }: Axis): number =>
  BOTTOM_MARGIN + (type === 'utc' ? 8 : 0);
const TICK_LENGTH = 5;
/** Room for half of the last label, pixels. */
const SIDE_MARGIN = 30;
/** Words beside rows take at most this share of the width, names and words together the other:
 * names beside short words may be long. */
const MAX_SIDE_SHARE = 0.3;
const MAX_SIDES_SHARE = 0.64;
const MAX_SINGLE_SIDE_SHARE = 0.46;
/** Titles are bold and so wider than measured: they are cut to this share of their room. */
const BOLD_TITLE_SHARE = 0.85;

/** Height of a row that has room for two lines, pixels. */
const MIN_WRAPPED_ROW = 26;

interface Frame {
  panel: Panel;
  x: [number, number];
  y: [number, number];
  yTicks: number[];
  words: string[];
  left: number;
  right: number;
}

function layOutFrame(panel: Panel, width: number, measure: Measure): Frame {
  const sideWidth = (
    labels: readonly string[],
    most = MAX_SIDE_SHARE,
  ): number =>
    Math.min(
      Math.round(width * most),
      Math.ceil(Math.max(0, ...labels.map((label) => measure(visible(label))))),
    );
  const x = endsOf(panel.x, valuesOf(panel, 'x'));
  if (isRows(panel.y)) {
    const { names, words = [] } = panel.y;
    const wordsAt = width > 560 ? 0 : 1;
    const shown = words.map((word) =>
      typeof word === 'string' ? word : word[wordsAt],
    );
    const right = sideWidth(shown);
    const most =
      right > 0 ? MAX_SIDES_SHARE - right / width : MAX_SINGLE_SIDE_SHARE;
    return {
      panel,
      x,
      y: [names.length - 0.5, -0.5],
      yTicks: names.map((_, at) => at),
      words: shown,
      left: sideWidth(names, most) + 12,
      right: right > 0 ? right + 16 : SIDE_MARGIN,
    };
  }
  const axis = panel.y;
  const y = endsOf(axis, valuesOf(panel, 'y'));
  const yTicks = ticksOf(axis, y, Math.max(2, Math.floor(panel.height / 34)));
  return {
    panel,
    x,
    y,
    yTicks,
    words: [],
    left:
      sideWidth(yTicks.map((tick) => labelOf(axis, tick, yTicks))) +
      TICK_LENGTH +
      8,
    right: SIDE_MARGIN,
  };
}

/** Draws panels below each other, their left and right edges in line. */
export function drawPanels(
  panels: readonly Panel[],
  width: number,
  measure: Measure,
): Drawing {
  const frames = panels.map((panel) => layOutFrame(panel, width, measure));
  const left = Math.max(...frames.map((frame) => frame.left));
  const right = Math.max(...frames.map((frame) => frame.right));
  const room = { width, left, right };
  const drawing: Drawing = { svgs: [], stops: [], axis: null };
  let top = 0;
  for (const frame of frames) {
    const { panel } = frame;
    const bottom = bottomMargin(panel.x);
    const height = TOP_MARGIN + panel.height + bottom;
    const made = plot({
      width,
      height,
      marginTop: TOP_MARGIN,
      marginBottom: bottom,
      marginLeft: left,
      marginRight: right,
      x: { type: panel.x.type ?? 'linear', domain: frame.x },
      y: {
        type: isRows(panel.y) ? 'linear' : (panel.y.type ?? 'linear'),
        domain: frame.y,
      },
      marks: [
        ...backMarks(frame, room, measure),
        ...panel.series.flatMap(seriesMarks),
        ...(panel.rules ?? []).map((rule) =>
          ruleLabel(
            rule,
            isRows(panel.y),
            shiftInside(
              visible(rule.label ?? ''),
              placeOf(frame, rule.x ?? 0, room),
              width,
              measure,
            ),
          ),
        ),
      ],
    } as PlotOptions);
    drawing.axis ??= {
      left,
      right: width - right,
      at: (x) => Number(made.scale('x')!.invert!(x)),
    };
    drawing.stops.push(...tooltipStops(frame, made, top));
    drawing.svgs.push(finishSvg(made));
    top += height;
  }
  return drawing;
}

/** Removes the style element that Plot adds, which the page's policy forbids (style.css has its
 * rules), and hides the drawing from screen readers. */
export function finishSvg(made: Element): SVGElement {
  made.querySelector('style')?.remove();
  made.setAttribute('aria-hidden', 'true');
  return made as SVGElement;
}

/** Grid, axes, rules and what is behind the data. */
function backMarks(
  { panel, x, yTicks, words }: Frame,
  room: { width: number; left: number; right: number },
  measure: Measure,
): Markish[] {
  const { x: xAxis, y: yAxis, band } = panel;
  const isTime = xAxis.type === 'utc';
  const inner = room.width - room.left - room.right;
  // The title is centred on the axis, and may extend beyond it.
  const around = inner + 2 * Math.min(room.left, room.right);
  const xTicks = isTime ? null : ticksThatFit(xAxis, x, inner, measure);
  const xLabels = xTicks && tickLabels(xAxis, xTicks);
  const rowNames = isRows(yAxis)
    ? fitNames(
        yAxis.names.map(visible),
        room.left - 12,
        measure,
        panel.height >= MIN_WRAPPED_ROW * yAxis.names.length,
      )
    : [];
  const grid = { stroke: 'var(--line)', strokeOpacity: 0.7 };
  // Labels are texts of ticks: with a format, d3 drops some labels of logarithmic axes.
  const shared = { labelArrow: 'none', color: COLOURS.muted } as const;
  return [
    band
      ? rect([band], {
          x1: '0',
          x2: '1',
          fill: COLOURS.neutral,
          fillOpacity: 0.18,
        })
      : null,
    xTicks ? gridX(xTicks, grid) : gridX({ ...grid, tickSpacing: 100 }),
    isRows(yAxis) ? null : gridY(yTicks, grid),
    axisX({
      ...(xTicks
        ? {
            ticks: xTicks,
            text: (_: number, at: number) => xLabels?.[at] ?? '',
          }
        : { tickSpacing: 100 }),
      ...shared,
      label:
        fitTitle(visible(xAxis.title), around * BOLD_TITLE_SHARE, measure) ||
        null,
      labelAnchor: 'center',
      labelOffset: bottomMargin(xAxis) - 8,
      tickSize: TICK_LENGTH,
    }),
    isRows(yAxis)
      ? axisY({
          ...shared,
          color: COLOURS.text,
          // A wider title would overlap labels of rules.
          label: measure(yAxis.title) < room.left ? visible(yAxis.title) : null,
          ticks: yTicks,
          text: (at: number) => rowNames[at] ?? '',
          tickSize: 0,
          tickPadding: 8,
        })
      : axisY({
          ...shared,
          label: truncate(
            visible(yAxis.title),
            room.width * BOLD_TITLE_SHARE,
            measure,
          ),
          ticks: yTicks,
          text: (v: number) =>
            truncate(
              labelOf(yAxis, v, yTicks),
              room.left - TICK_LENGTH - 6,
              measure,
            ),
          tickSize: TICK_LENGTH,
        }),
    words.length > 0
      ? text(words, {
          y: (_: string, at: number) => at,
          text: (word: string) =>
            truncate(visible(word), room.right - 12, measure),
          frameAnchor: 'right',
          textAnchor: 'start',
          dx: 10,
          fill: COLOURS.text,
        })
      : null,
    ...(panel.rules ?? []).map((rule) => {
      const style = {
        stroke: COLOURS.text,
        strokeWidth: 1.2,
        strokeDasharray: rule.dash ?? '',
      };
      return rule.x === undefined
        ? ruleY([rule.y], style)
        : ruleX([rule.x], style);
    }),
  ];
}

/** The place of a value along x, pixels. */
function placeOf(
  { panel, x: [from, to] }: Frame,
  value: number,
  { width, left, right }: { width: number; left: number; right: number },
): number {
  const at = panel.x.type === 'log' ? Math.log : Number;
  const share = (at(value) - at(from)) / (at(to) - at(from));
  return left + share * (width - left - right);
}

/** A rule's label: above rows, else along the rule. */
function ruleLabel(rule: Rule, isAbove: boolean, shift: number): Markish {
  const label = rule.label ? [visible(rule.label)] : [];
  const style = {
    text: (words: string) => words,
    fill: COLOURS.text,
    stroke: COLOURS.background,
    strokeWidth: 4,
  };
  if (rule.x === undefined)
    return text(label, {
      ...style,
      y: [rule.y],
      // The newest points are at the right.
      frameAnchor: 'left',
      textAnchor: 'start',
      dx: 4,
      dy: -9,
    });
  const place = isAbove
    ? ({ lineAnchor: 'bottom', dx: shift, dy: -5 } as const)
    : ({
        rotate: -90,
        textAnchor: 'end',
        lineAnchor: 'bottom',
        dx: -3,
        dy: 4,
      } as const);
  return text(label, { ...style, x: [rule.x], frameAnchor: 'top', ...place });
}

/** The marks of a series, intervals behind lines behind dots. */
function seriesMarks(series: Series): Markish[] {
  const points = series.points;
  const colour = (p: Point): string =>
    p.colour ?? series.colour ?? COLOURS.neutral;
  const isHollow = (p: Point): boolean =>
    p.isHollow ?? series.isHollow ?? false;
  const { opacity = 1 } = series;
  const known = points.filter((p) => finite(p.low) && finite(p.high));
  const between = {
    stroke: colour,
    strokeWidth: series.thickness ?? 2,
    marker: 'tick',
  } as const;
  return [
    ...(series.box ? boxMarks(series, colour) : []),
    !series.box && series.interval === 'x'
      ? ruleY(known, { ...between, y: 'y', x1: 'low', x2: 'high' })
      : null,
    series.isBand
      ? line(
          [
            ...known.map(({ x, high }) => [x, high!] as const),
            ...known.map(({ x, low }) => [x, low!] as const).reverse(),
          ],
          {
            stroke: 'none',
            fill: series.colour ?? COLOURS.neutral,
            fillOpacity: 0.2,
          },
        )
      : null,
    !series.box && !series.isBand && series.interval === 'y'
      ? ruleX(known, { ...between, x: 'x', y1: 'low', y2: 'high' })
      : null,
    series.line
      ? line(points, {
          x: 'x',
          y: 'y',
          z: null,
          stroke: series.colour ?? COLOURS.neutral,
          strokeWidth: series.width ?? 2,
          strokeDasharray: series.dash ?? '',
          curve: series.line === 'step' ? 'step-after' : 'linear',
        })
      : null,
    !series.box && series.size !== 0
      ? dot(points, {
          x: 'x',
          y: 'y',
          r: series.size ?? 4.5,
          symbol: (p: Point) => p.shape ?? series.shape ?? 'circle',
          rotate: (p: Point) => p.turn ?? series.turn ?? 0,
          fill: (p: Point) => (isHollow(p) ? COLOURS.background : colour(p)),
          stroke: colour,
          strokeWidth: (p: Point) => (isHollow(p) ? 1.6 : 0.5),
          opacity,
        })
      : null,
    points.some((p) => p.sign)
      ? text(points, {
          x: 'x',
          y: 'y',
          text: 'sign',
          textAnchor: 'start',
          dx: 7,
          dy: -7,
          fontSize: 13,
          fill: COLOURS.text,
          stroke: COLOURS.background,
        })
      : null,
  ];
}

function boxMarks(series: Series, fill: (p: Point) => string): Markish[] {
  const around = (half: number) => ({
    y1: (p: Point) => p.y! - half,
    y2: (p: Point) => p.y! + half,
  });
  if (series.box === 'cell')
    return [
      rect(series.points, {
        ...around(0.5),
        x1: (p: Point) => p.low ?? p.x - 0.5,
        x2: (p: Point) => p.high ?? p.x + 0.5,
        fill,
        shapeRendering: 'crispEdges',
      }),
    ];
  const x1 = (p: Point): number => p.low ?? 0;
  return [rect(series.points, { ...around(0.3), x1, x2: 'x', fill })];
}

function tooltipStops(
  { panel }: Frame,
  made: ReturnType<typeof plot>,
  top: number,
): Stop[] {
  const [x, y] = [made.scale('x')!, made.scale('y')!];
  const rows = isRows(panel.y);
  const stops = panel.series.flatMap((series) =>
    filterMap(series.points, (p): (Stop & { at: number }) | null => {
      if (p.tooltip === undefined || !finite(p.x) || !finite(p.y)) return null;
      const row = Math.round(p.y);
      return {
        at: rows ? row : 0,
        x: x.apply(p.x) as number,
        y: (y.apply(p.y) as number) + top,
        row: rows
          ? [
              (y.apply(row - 0.5) as number) + top,
              (y.apply(row + 0.5) as number) + top,
            ]
          : null,
        tooltip: p.tooltip,
        ...(p.pick ? { pick: p.pick } : {}),
      };
    }),
  );
  return stops.sort((a, b) => a.at - b.at || (rows ? a.x - b.x : 0));
}

/** A small picture of how a series is drawn. */
export function swatch(series: Series): SVGElement {
  const { interval: _, ...plain } = series;
  const { line: __, ...dots } = plain;
  const points = (all: number[]): Point[] => all.map((x) => ({ x, y: 0 }));
  const size = Math.min(series.size ?? 4, 4);
  return finishSvg(
    plot({
      width: 26,
      height: 12,
      margin: 0,
      axis: null,
      x: { domain: [0, 2] },
      y: { domain: [-1, 1] },
      marks: [
        ...seriesMarks({ ...plain, size: 0, points: points([0, 2]) }),
        ...seriesMarks({ ...dots, size, points: points([1]) }),
      ],
    } as PlotOptions),
  );
}
