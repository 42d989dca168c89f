// Reads a "pinwise.fleet-report/1"; entries without a name are left out.

import { items, list, text } from '../../fields';
import type {
  FleetCommon,
  FleetFigure,
  FleetGroup,
  FleetOutlier,
  FleetReport,
  Having,
  Maybe,
} from '../../records';
import type { AnyRecord } from '../../source';

/** A figure over the nodes of a group. */
export type GroupFigure = FleetFigure & { label: string };
/** Nodes that should be alike. */
export interface Group extends Omit<FleetGroup, 'figures' | 'identity'> {
  identity: [string, string][];
  figures: GroupFigure[];
}
/** A figure, or a setting, of a node that differs from its group. */
export type Outlier = Having<FleetOutlier, 'node' | 'figure'>;
/** What outliers have in common. */
export type Common = Having<FleetCommon, 'nodes' | 'figures' | 'setting'>;
export interface Report extends Omit<
  FleetReport,
  'groups' | 'outliers' | 'common'
> {
  groups: Group[];
  outliers: Outlier[];
  common: Common[];
}

/** Is it a setting that differs, not a figure? */
export const isSetting = ({ setting }: Outlier): boolean =>
  typeof setting === 'string';

/** The entries of an object, sorted by name. */
export const sortedEntries = (
  value: Maybe<Record<string, string>>,
): [string, string][] =>
  Object.entries(value ?? {}).sort(([a], [b]) => a.localeCompare(b));

/** "step · name", as outliers name it. */
const labelOf = ({ step, name }: Pick<FleetFigure, 'step' | 'name'>): string =>
  [step, name].filter(Boolean).join(' · ');

/** Figures with their labels. */
export const withLabels = <T extends Pick<FleetFigure, 'step' | 'name'>>(
  figures: Maybe<readonly T[]>,
): (T & { label: string })[] =>
  items(figures).map((figure) => ({ ...figure, label: labelOf(figure) }));

/** The report of a record. */
export function readReport(any: AnyRecord): Report {
  const record = any as FleetReport;
  return {
    ...record,
    sentence: text(record.sentence),
    groups: items(record.groups).map((group) => ({
      ...group,
      identity: sortedEntries(group.identity),
      figures: withLabels(group.figures),
    })),
    outliers: items(record.outliers)
      .filter((one): one is Outlier =>
        Boolean(text(one.node) && text(one.figure)),
      )
      .map((one) => ({
        ...one,
        sentence: text(one.sentence),
      })),
    common: items(record.common).map((common) => ({
      ...common,
      nodes: [...list(common.nodes)],
      figures: [...list(common.figures)],
      sentence: text(common.sentence),
      setting: text(common.setting),
    })),
  };
}
