// The data that a fleet's report shows: missing nodes, nodes with their anomalies, rows of tables,
// and positions on strips.

import { change, digits, percent, quantity, span } from '../../format';
import type { Cell } from '../../sortable';
import { groupBy, tally } from '../../lists';
import { finite, positive } from '../../numbers';
import type { Maybe } from '../../records';
import type { Group, GroupFigure, Outlier, Report } from './record';
import { isSetting } from './record';

/** "12 of 4,000 nodes have no record; 3 lack steps."; empty if nothing is missing. */
export function missingWords(report: Report): string {
  const { asked, nodes, complete } = report;
  const parts: string[] = [];
  if (finite(asked) && finite(nodes) && asked > nodes)
    parts.push(
      `${formatNumber(asked - nodes)} of the ${formatNumber(asked)} requested nodes ${asked - nodes === 1 ? 'has' : 'have'} no record`,
    );
  if (finite(nodes) && finite(complete) && nodes > complete)
    parts.push(
      `${formatNumber(nodes - complete)} of ${formatNumber(nodes)} nodes ${nodes - complete === 1 ? 'lacks' : 'lack'} steps`,
    );
  return parts.length > 0 ? `${parts.join('; ')}.` : '';
}

const formatNumber = (number: number): string => number.toLocaleString('en-US');

/** Filters of the outliers; `null` lets everything through. */
export interface OutlierFilter {
  group: number | null;
  figure: string | null;
  /** Nodes; empty means all. */
  nodes?: ReadonlySet<string>;
}

export const filterOutliers = (
  outliers: readonly Outlier[],
  narrowing: OutlierFilter,
): Outlier[] =>
  outliers.filter(
    (o) =>
      (narrowing.group === null || o.group === narrowing.group) &&
      (narrowing.figure === null || o.figure === narrowing.figure) &&
      (!narrowing.nodes?.size || narrowing.nodes.has(o.node)),
  );

/** Counts the outliers of each figure and setting, the most frequent first. */
export function countFigures(
  outliers: readonly Outlier[],
): [figure: string, times: number][] {
  return tally(outliers.map(({ figure }) => figure)).sort(
    (a, b) => b[1] - a[1] || a[0].localeCompare(b[0]),
  );
}

export interface OutlierNode {
  node: string;
  group: Maybe<number>;
  outliers: Outlier[];
}

/** Nodes in the order of the record: those that differ most first. */
export function outlierNodes(outliers: readonly Outlier[]): OutlierNode[] {
  return [...groupBy(outliers, ({ node }) => node)].map(([node, own]) => ({
    node,
    group: own[0].group,
    outliers: own,
  }));
}

/** "0.012", "< 0.0001". */
export function pText(p: Maybe<number>): string {
  if (!finite(p)) return '–';
  return p < 1e-4 ? '< 0.0001' : digits(p, 2);
}

/** A ratio as a change, as the sentence has it. */
const changeCell = (ratio: Maybe<number>): Cell => ({
  text: change(ratio),
  sort: ratio ?? null,
});

/** "Group 2: EPYC"; commands accept the number. */
export const groupName = (
  groups: readonly Group[],
  group: Maybe<number>,
): string =>
  !finite(group)
    ? '–'
    : `Group ${group + 1}${groups[group]?.name ? `: ${groups[group].name}` : ''}`;

/** Addresses that names in rows lead to; `undefined` if there is nothing to open. */
export type Link = (id: string) => string | undefined;

/** One row for each figure and setting that differs. */
export function outlierRow(
  outlier: Outlier,
  report: Report,
  link: Link,
): Cell[] {
  const node = nodeId(report, outlier.node);
  const shown = (value: Maybe<number>, setting: Maybe<string>): Cell =>
    isSetting(outlier)
      ? { text: setting ?? '–' }
      : { text: quantity(value, outlier.unit), sort: value ?? null };
  return [
    { text: outlier.node, href: link(node) },
    {
      text: outlier.figure,
      href:
        outlier.record && outlier.record !== node
          ? link(outlier.record)
          : undefined,
    },
    shown(outlier.value, outlier.setting),
    shown(outlier.typical, outlier.typical_setting),
    changeCell(outlier.ratio),
    { text: pText(outlier.adjusted_p), sort: outlier.adjusted_p ?? null },
  ];
}

/** The id of a node's record. */
export const nodeId = (report: Pick<Report, 'fleet'>, node: string): string =>
  `${report.fleet}.${node}`;

/** Largest and smallest end of a strip, as a ratio to the median; beyond the end, dots are arrows. */
const MAX_RATIO = 4;
const MIN_MAX_RATIO = 1.1;

/** From the least to the greatest ratio that a group's strips show. */
export type Range = readonly [low: number, high: number];

const ratioTo = (median: Maybe<number>, value: Maybe<number>): number | null =>
  positive(median) && positive(value) ? value / median : null;

/** A range of ratios that holds the figures, equal ratios equally far apart. */
export function ratioRange(ratios: readonly Maybe<number>[]): Range {
  let [low, high] = [1 / MIN_MAX_RATIO, MIN_MAX_RATIO];
  for (const ratio of ratios) {
    if (!positive(ratio)) continue;
    low = Math.min(low, ratio);
    high = Math.max(high, ratio);
  }
  const margin = 1.03;
  return [
    Math.max(1 / MAX_RATIO, low / margin),
    Math.min(MAX_RATIO, high * margin),
  ];
}

/** The range of a group: its figures' ends and its outliers. */
export function groupRange(group: Group, outliers: readonly Outlier[]): Range {
  const ends = group.figures.flatMap((figure) => [
    ratioTo(figure.median, figure.least),
    ratioTo(figure.median, figure.greatest),
  ]);
  return ratioRange([...ends, ...outliers.map((outlier) => outlier.ratio)]);
}

/** Position of a ratio, per cent of the strip's width, and whether it lies beyond it. */
export function place(
  ratio: number,
  [low, high]: Range,
): { at: number; beyond: -1 | 0 | 1 } {
  const share = Math.log(ratio / low) / Math.log(high / low);
  // The margin of 1 % keeps dots at the edge whole.
  const at = 1 + 98 * Math.min(1, Math.max(0, share));
  return {
    at: Math.round(at * 100) / 100,
    beyond: share < -1e-9 ? -1 : share > 1 + 1e-9 ? 1 : 0,
  };
}

const TICKS = [
  1, 2, 0.5, 4, 0.25, 1.5, 0.67, 3, 0.33, 1.2, 0.8, 1.1, 0.9, 1.05, 0.95,
];
/** Width of a tick's label on a small screen, per cent of the strip. */
const TICK_ROOM = 13;

/** Chooses the labels of the axis: round ratios, 1 first, as many as fit. */
export function chooseTicks(range: Range): number[] {
  const taken: number[] = [];
  for (const tick of TICKS) {
    const { at, beyond } = place(tick, range);
    const isClear = taken.every(
      (other) => Math.abs(place(other, range).at - at) >= TICK_ROOM,
    );
    if (beyond === 0 && isClear && at > 4 && at < 96) taken.push(tick);
  }
  return taken.sort((a, b) => a - b);
}

/** Range of ordinary nodes on a figure's strip; `null` for an end that is not known. */
export interface StripEnds {
  box: readonly [p5: number, p95: number] | null;
  reach: readonly [least: number, greatest: number] | null;
}

/** A figure's strip; `null` if ratios to its median mean nothing. */
export function stripEnds(figure: GroupFigure): StripEnds | null {
  if (!positive(figure.median)) return null;
  const both = (
    low: Maybe<number>,
    high: Maybe<number>,
  ): readonly [number, number] | null => {
    const [from, to] = [
      ratioTo(figure.median, low),
      ratioTo(figure.median, high),
    ];
    return from === null || to === null ? null : [from, to];
  };
  return {
    box: both(figure.p5, figure.p95),
    reach: both(figure.least, figure.greatest),
  };
}

/** Groups that are open at first: the first ones with outliers, else the first. */
export function openGroups(report: Report, most: number): Set<number> {
  const withOutliers = report.groups
    .map((_, at) => at)
    .filter((at) =>
      report.outliers.some(
        (outlier) => outlier.group === at && !isSetting(outlier),
      ),
    );
  return new Set((withOutliers.length > 0 ? withOutliers : [0]).slice(0, most));
}

/** The figures of a group, then other figures with outliers, such as widths of intervals. */
export function groupStrips(
  group: Group,
  outliers: readonly Outlier[],
): { figure: GroupFigure; outliers: readonly Outlier[] }[] {
  const ofFigure = groupBy(
    outliers.filter((outlier) => !isSetting(outlier)),
    ({ figure }) => figure,
  );
  const known = new Set(group.figures.map((figure) => figure.label));
  const others = [...ofFigure]
    .filter(([label]) => !known.has(label))
    .map(([label, own]): GroupFigure => {
      const { unit = '', typical = null } = own[0];
      return { label, unit, median: typical };
    });
  return [...group.figures, ...others].map((figure) => ({
    figure,
    outliers: ofFigure.get(figure.label) ?? [],
  }));
}

/** Strips with outliers, and the others, which are folded if there are both. */
export function splitStrips<T extends { outliers: readonly Outlier[] }>(
  strips: readonly T[],
): [shown: T[], folded: T[]] {
  const shown = strips.filter((strip) => strip.outliers.length > 0);
  return shown.length === 0
    ? [[...strips], []]
    : [shown, strips.filter((strip) => strip.outliers.length === 0)];
}

/** "median 90.2 ns, 5th to 95th percentile 85 ns to 95 ns, least 80 ns, greatest 160 ns; 3
 * outliers". */
export function stripWords(figure: GroupFigure, outliers: number): string {
  const of = (value: Maybe<number>): string => quantity(value, figure.unit);
  const spread = finite(figure.spread)
    ? `, ordinary nodes within about ${percent(figure.spread)} of it`
    : '';
  const ordinary = span(figure.p5, figure.p95, of);
  const box = ordinary ? `, 5th to 95th percentile ${ordinary}` : '';
  const reach =
    finite(figure.least) && finite(figure.greatest)
      ? `, least ${of(figure.least)}, greatest ${of(figure.greatest)}`
      : '';
  const who =
    outliers === 0
      ? 'no outlier'
      : outliers === 1
        ? '1 outlier'
        : `${formatNumber(outliers)} outliers`;
  return `median ${of(figure.median)}${spread}${box}${reach}; ${who}`;
}
