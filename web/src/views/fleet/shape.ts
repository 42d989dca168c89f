// Hosts beside their peers: each figure divided by the median of the machines with the same CPU
// model and shape. A fleet's report tells which of them differ beyond chance.

import { count, ratio } from '../../format';
import { groupBy, tally } from '../../lists';
import { median } from '../../numbers';
import type { Entry } from '../../source';
import { parseMachine } from '../history/machine';
import { nameKind } from '../history/shape';

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
  /** Value over the median of the group; null if it is alone there. */
  ratio: number | null;
  record: string;
}

export interface Node {
  host: string;
  group: string;
  cells: Map<string, Cell>;
}

export interface Fleet {
  columns: Column[];
  /** Those that are furthest from their peers first. */
  nodes: Node[];
  groups: { name: string; nodes: number }[];
}

const UNKNOWN = 'machine unknown';

/** CPU model and shape: machines that should be alike. */
export function groupName(machine: string | null): string {
  if (machine === null) return UNKNOWN;
  const parts = parseMachine(machine);
  const shown = [
    parts.get('CPU'),
    parts.has('shape') ? `shape ${parts.get('shape')}` : undefined,
  ].filter((part) => part !== undefined);
  return shown.join(', ') || UNKNOWN;
}

/** The newest complete record of each host and question. */
export function newestEntries(entries: readonly Entry[]): Entry[] {
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

function listReadings(entries: readonly Entry[]): Reading[] {
  return newestEntries(entries).flatMap((entry) => {
    const seen = new Map<string, number>();
    return entry.figures
      .filter((figure) => Number.isFinite(figure.value))
      .map((figure) => {
        const times = (seen.get(figure.name) ?? 0) + 1;
        seen.set(figure.name, times);
        const name = times > 1 ? `${figure.name} (${times})` : figure.name;
        const question = entry.subject ?? nameKind(entry.schema);
        const key = JSON.stringify([entry.schema, question, name, figure.unit]);
        return {
          column: {
            key,
            kind: nameKind(entry.schema),
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

/** Does a ratio of this figure mean something? It does not for one around zero, such as a gate's
 * changes. */
const hasRatios = (column: Column, readings: readonly Reading[]): boolean =>
  column.kind !== 'gate' && readings.every(({ value }) => value >= 0);

/** Nodes, figures and outliers. Figures that only one node has, or without ratios, are left out. */
export function toFleet(entries: readonly Entry[]): Fleet {
  const all = listReadings(entries);
  const columns = new Map<string, Column>();
  const hosts = new Map<string, Set<string>>();
  for (const { column, entry } of all) {
    columns.set(column.key, column);
    hosts.set(column.key, (hosts.get(column.key) ?? new Set()).add(entry.host));
  }
  const byColumn = groupBy(all, (reading) => reading.column.key);
  const shared = [...columns.values()].filter(
    (column) =>
      hosts.get(column.key)!.size > 1 &&
      hasRatios(column, byColumn.get(column.key) ?? []),
  );
  const nodes = new Map<string, Node>();
  for (const [host, own] of groupBy(all, (reading) => reading.entry.host)) {
    const last = own.reduce((a, b) => (b.entry.time > a.entry.time ? b : a));
    nodes.set(host, {
      host,
      group: groupName(last.entry.machine),
      cells: new Map(),
    });
  }
  for (const column of shared)
    fillColumn(column, byColumn.get(column.key) ?? [], nodes);
  const groups = countGroups(nodes);
  const names = nameGroups(groups.map(({ name }) => name));
  for (const node of nodes.values()) node.group = names.get(node.group)!;
  return {
    columns: shared,
    nodes: [...nodes.values()].sort(
      (a, b) =>
        nodeDistance(b) - nodeDistance(a) || a.host.localeCompare(b.host),
    ),
    groups: groups.map((one) => ({ ...one, name: names.get(one.name)! })),
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
    const middle = median(members.map((reading) => reading.value))!;
    for (const { entry, value } of members)
      nodes.get(entry.host)!.cells.set(column.key, {
        value,
        ratio: middle === 0 || members.length < 2 ? null : value / middle,
        record: entry.id,
      });
  }
}

/** Names without hashes of topologies: those of the same CPU are numbered. */
function nameGroups(groups: readonly string[]): Map<string, string> {
  const byCpu = groupBy(groups, (name) => name.replace(/, shape \S+$/, ''));
  return new Map(
    [...byCpu].flatMap(([cpu, own]) =>
      own.map((name, at): [string, string] => [
        name,
        own.length > 1 ? `${cpu}, topology ${at + 1}` : cpu,
      ]),
    ),
  );
}

function countGroups(nodes: ReadonlyMap<string, Node>): Fleet['groups'] {
  return tally([...nodes.values()].map((node) => node.group))
    .map(([name, number]) => ({ name, nodes: number }))
    .sort((a, b) => b.nodes - a.nodes || a.name.localeCompare(b.name));
}

/** The distance of a figure from those of its peers, as the logarithm of its ratio. */
const cellDistance = ({ ratio }: Cell): number =>
  ratio !== null && ratio > 0 ? Math.abs(Math.log(ratio)) : 0;

const nodeDistance = (node: Node): number =>
  Math.max(0, ...[...node.cells.values()].map(cellDistance));

/** "×1.81". */
export const timesMark = (value: number): string => `×${ratio(value)}`;

/** The number of hosts, and the one that is furthest from its peers. */
export function verdictText(
  { columns, groups, nodes }: Fleet,
  hasFleets = false,
): string {
  const size = `${count(nodes.length, 'host')}${hasFleets ? ' of records other than fleet nodes,' : ''} in ${count(groups.length, 'group')} of similar machines`;
  if (groups.length === nodes.length)
    return `${size}: none has a peer to compare with.`;
  const [first] = nodes;
  const far = columns
    .flatMap((column) => {
      const cell = first?.cells.get(column.key);
      return cell ? [{ column, cell }] : [];
    })
    .sort((a, b) => cellDistance(b.cell) - cellDistance(a.cell))[0];
  return far && cellDistance(far.cell) > 0
    ? `${size}. Furthest from its peers is ${first!.host}: ${far.column.name} ${timesMark(far.cell.ratio!)} their median.`
    : `${size}.`;
}
