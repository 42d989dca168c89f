// Nodes beside their peers: each figure divided by the median of the machines of the same CPU model
// and shape, and the outliers.
//
// Outliers by the modified z-score of Iglewicz and Hoaglin (1993, "How to
// Detect and Handle Outliers"): 0.6745 · (x − median) / MAD beyond 3.5.

import { digits, quantity, ratio } from '../../format';
import { filterMap, groupBy, tally } from '../../lists';
import { median } from '../../numbers';
import type { Entry } from '../../source';
import { kindWords, machineParts } from '../history/shape';

export const Z_LIMIT = 3.5;
/** Fewer peers have no meaningful spread. */
export const MIN_GROUP = 4;

/** A column: one figure of one question. */
export interface Column {
  key: string;
  kind: string;
  question: string;
  name: string;
  unit: string;
}

export interface Cell {
  value: number;
  /** Over the median of the group. */
  ratio: number | null;
  median: number;
  /** Nodes of the group that have the figure. */
  equals: number;
  /** Modified z-score; null in groups that are too small. */
  z: number | null;
  isOutlier: boolean;
  record: string;
}

export interface Node {
  host: string;
  group: string;
  cells: Map<string, Cell>;
}

export interface Finding {
  host: string;
  column: Column;
  cell: Cell;
  sentence: string;
}

export interface Fleet {
  columns: Column[];
  /** Those with the worst outliers first. */
  nodes: Node[];
  groups: { name: string; nodes: number }[];
  findings: Finding[];
}

const UNKNOWN = 'machine unknown';

/** CPU model and shape: machines that should be alike. */
export function groupOf(machine: string | null): string {
  if (machine === null) return UNKNOWN;
  const parts = machineParts(machine);
  const shown = [
    parts.get('CPU'),
    parts.has('shape') ? `shape ${parts.get('shape')}` : undefined,
  ].filter((part) => part !== undefined);
  return shown.join(', ') || UNKNOWN;
}

/** The newest complete record of each host and question. */
export function newest(entries: readonly Entry[]): Entry[] {
  const found = new Map<string, Entry>();
  for (const entry of entries) {
    if (!entry.complete || entry.figures.length === 0) continue;
    const key = JSON.stringify([entry.host, entry.schema, entry.subject]);
    const known = found.get(key);
    if (!known || entry.time > known.time) found.set(key, entry);
  }
  return [...found.values()];
}

interface Reading {
  column: Column;
  entry: Entry;
  value: number;
}

function readings(entries: readonly Entry[]): Reading[] {
  return newest(entries).flatMap((entry) => {
    const seen = new Map<string, number>();
    return entry.figures
      .filter((figure) => Number.isFinite(figure.value))
      .map((figure) => {
        const times = (seen.get(figure.name) ?? 0) + 1;
        seen.set(figure.name, times);
        const name = times > 1 ? `${figure.name} (${times})` : figure.name;
        const question = entry.subject ?? kindWords(entry.schema);
        const key = JSON.stringify([entry.schema, question, name, figure.unit]);
        return {
          column: {
            key,
            kind: kindWords(entry.schema),
            question,
            name,
            unit: figure.unit,
          },
          entry,
          value: figure.value,
        };
      });
  });
}

/** Nodes, figures and outliers. Figures that only one node has are left out. */
export function fleetOf(entries: readonly Entry[]): Fleet {
  const all = readings(entries);
  const columns = new Map<string, Column>();
  const hosts = new Map<string, Set<string>>();
  for (const { column, entry } of all) {
    columns.set(column.key, column);
    hosts.set(column.key, (hosts.get(column.key) ?? new Set()).add(entry.host));
  }
  const shared = [...columns.values()].filter(
    (column) => hosts.get(column.key)!.size > 1,
  );
  const nodes = new Map<string, Node>();
  for (const [host, own] of groupBy(all, (reading) => reading.entry.host)) {
    const last = own.reduce((a, b) => (b.entry.time > a.entry.time ? b : a));
    nodes.set(host, {
      host,
      group: groupOf(last.entry.machine),
      cells: new Map(),
    });
  }
  const byColumn = groupBy(all, (reading) => reading.column.key);
  for (const column of shared)
    fillColumn(column, byColumn.get(column.key) ?? [], nodes);
  const findings = [...nodes.values()]
    .flatMap((node) => findingsOf(node, shared))
    .sort((a, b) => Math.abs(b.cell.z!) - Math.abs(a.cell.z!));
  return {
    columns: shared,
    nodes: [...nodes.values()].sort(
      (a, b) => worst(b) - worst(a) || a.host.localeCompare(b.host),
    ),
    groups: groupsOf(nodes),
    findings,
  };
}

function fillColumn(
  column: Column,
  found: readonly Reading[],
  nodes: ReadonlyMap<string, Node>,
): void {
  for (const members of groupBy(
    found,
    (reading) => nodes.get(reading.entry.host)!.group,
  ).values()) {
    const values = members.map((reading) => reading.value);
    const middle = median(values)!;
    const scores = values.length < MIN_GROUP ? null : modifiedZ(values);
    members.forEach((reading, at) => {
      const z = scores?.[at] ?? null;
      nodes.get(reading.entry.host)!.cells.set(column.key, {
        value: reading.value,
        ratio: middle === 0 ? null : reading.value / middle,
        median: middle,
        equals: values.length,
        z,
        isOutlier: z !== null && Math.abs(z) > Z_LIMIT,
        record: reading.entry.id,
      });
    });
  }
}

function groupsOf(nodes: ReadonlyMap<string, Node>): Fleet['groups'] {
  return tally([...nodes.values()].map((node) => node.group))
    .map(([name, number]) => ({ name, nodes: number }))
    .sort((a, b) => b.nodes - a.nodes || a.name.localeCompare(b.name));
}

/**
 * Modified z-scores. If more than half of the values are the same, the MAD is 0 and the mean
 * absolute deviation takes its place, as the authors' later users do; if all are the same, there
 * are no outliers.
 */
export function modifiedZ(values: readonly number[]): number[] {
  const middle = median(values)!;
  const off = values.map((value) => Math.abs(value - middle));
  const mad = median(off)!;
  const mean = off.reduce((sum, value) => sum + value, 0) / off.length;
  const spread = mad > 0 ? mad / 0.6745 : mean * 1.253314;
  return values.map((value) => (spread > 0 ? (value - middle) / spread : 0));
}

const outlierZ = (cell: Cell): number =>
  cell.isOutlier ? Math.abs(cell.z ?? 0) : 0;

const worst = (node: Node): number =>
  Math.max(0, ...[...node.cells.values()].map(outlierZ));

function findingsOf(node: Node, columns: readonly Column[]): Finding[] {
  return filterMap(columns, (column) => {
    const cell = node.cells.get(column.key);
    if (!cell?.isOutlier) return null;
    return {
      host: node.host,
      column,
      cell,
      sentence: sentenceOf(node.host, column, cell),
    };
  });
}

/** "×1.81". */
export const timesMark = (value: number): string => `×${ratio(value)}`;

/** "1.81 times the median", or "5.3 % below the median". */
function ratioWords(ratio: number | null): string {
  if (ratio === null) return 'off the median';
  if (Math.abs(ratio - 1) >= 0.2) return `${digits(ratio, 3)} times the median`;
  return `${digits(Math.abs(ratio - 1) * 100, 2)} % ${ratio < 1 ? 'below' : 'above'} the median`;
}

function sentenceOf(host: string, column: Column, cell: Cell): string {
  const figures = `${quantity(cell.value, column.unit)} against ${quantity(cell.median, column.unit)}`;
  const z = digits(cell.z ?? 0, 2).replace('-', '−');
  return `${host}: ${column.name} ${ratioWords(cell.ratio)} of its group of ${cell.equals} (${figures}; robust z ${z}).`;
}

/**
 * For how many of 100 figures chance alone marks a node, in groups of equal
 * nodes whose figures are normal: by simulation, which a test repeats.
 */
export function chancePercent(nodes: number): number {
  if (nodes <= 5) return 20;
  return nodes <= 12 ? 13 : 10;
}
