// The map of outliers: which nodes differ in which figures, and how far, grouped by the settings
// that the nodes have in common.

import { mapNumber } from '../../numbers';
import type { Maybe } from '../../records';
import { type Common, type Outlier, type Report, isSetting } from './record';
import { countFigures, outlierNodes } from './shape';

/** Maximum number of columns; the tables below have all figures. */
const MAX_COLUMNS = 30;
/** Robust z-score with the full colour. */
export const FULL_COLOUR_Z = 12;

export interface HeatRow {
  node: string;
  group: Maybe<number>;
  /** By column; null if the node is no outlier there. */
  cells: (Outlier | null)[];
}

/** Nodes with a common cause, or without a known one. */
export interface HeatPart {
  cause: Common | null;
  rows: HeatRow[];
}

export interface Heat {
  columns: string[];
  /** Number of figures that differ and are not drawn. */
  more: number;
  parts: HeatPart[];
}

/** The map of outliers: causes first, their figures at the left. */
export function toHeat(
  report: Pick<Report, 'common'>,
  outliers: readonly Outlier[],
): Heat {
  const causes = report.common.filter((common) => common.nodes.length > 0);
  const named = countFigures(outliers).map(([figure]) => figure);
  const first = causes
    .flatMap(({ figures, setting }) => [...figures, setting])
    .filter((figure) => named.includes(figure));
  const all = [...new Set([...first, ...named])];
  const columns = all.slice(0, MAX_COLUMNS);
  const place = new Map(columns.map((figure, at) => [figure, at]));
  const rows = outlierNodes(outliers).map((node): HeatRow => {
    const cells: HeatRow['cells'] = columns.map(() => null);
    for (const outlier of node.outliers) {
      const at = place.get(outlier.figure);
      if (at !== undefined) cells[at] = outlier;
    }
    return { node: node.node, group: node.group, cells };
  });
  const parts: HeatPart[] = causes.map((cause) => ({ cause, rows: [] }));
  const rest: HeatPart = { cause: null, rows: [] };
  for (const row of rows) {
    const own = parts.find(
      ({ cause }) =>
        cause!.nodes.includes(row.node) &&
        (cause!.group === null || cause!.group === row.group),
    );
    (own ?? rest).rows.push(row);
  }
  rest.rows.sort((a, b) => firstCell(a) - firstCell(b));
  return {
    columns,
    more: all.length - columns.length,
    parts: [...parts, rest].filter((part) => part.rows.length > 0),
  };
}

/** The first column with an outlier, to sort nodes that differ in the same figures together. */
const firstCell = (row: HeatRow): number =>
  row.cells.findIndex((cell) => cell !== null);

/** How strong a cell's colour is, −1 to 1; null if no distance is known. */
export const colourStrength = ({ z }: Outlier): number | null =>
  mapNumber(z, (far) => Math.max(-1, Math.min(1, far / FULL_COLOUR_Z)));

/** Is more of a figure better? Of a rate it is. */
const isRate = (unit: Maybe<string>): boolean => /(\/s|Hz)$/.test(unit ?? '');

/** Is the node worse than its group: slower, or with a lower rate? */
export const isWorse = ({ z, unit }: Outlier): boolean =>
  (z ?? 0) < 0 === isRate(unit);

/** ▲ above its group, ▼ below it, ≠ for a setting. */
export const outlierGlyph = (outlier: Outlier): string =>
  isSetting(outlier)
    ? '≠'
    : (outlier.ratio ?? (outlier.z ?? 0) + 1) >= 1
      ? '▲'
      : '▼';
