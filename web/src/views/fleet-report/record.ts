// The fields of "pinwise.fleet-report/1" that are drawn, read with care.

import { each, fields, number, text, texts } from '../../fields';
import type {
  Finding,
  FleetCommon,
  FleetFigure,
  FleetGroup,
  FleetOutlier,
  FleetReport,
} from '../../records';
import type { AnyRecord } from '../../source';

export type Report = ReturnType<typeof readReport>;
/** Nodes that should be alike. */
export type Group = ReturnType<typeof readGroup>;
/** A figure over the nodes of a group. */
export type GroupFigure = ReturnType<typeof readFigure>;
/** A figure, or a setting, of a node that differs from its group. */
export type Outlier = ReturnType<typeof readOutlier>;
/** What outliers have in common. */
export type Common = ReturnType<typeof readCommon>;

const optional = (value: unknown): string | null =>
  typeof value === 'string' ? value : null;

/** Names and words, in the names' order. */
export const pairs = (
  value: Record<string, string> | null | undefined,
): [string, string][] =>
  Object.entries(fields(value))
    .filter((pair): pair is [string, string] => typeof pair[1] === 'string')
    .sort(([a], [b]) => a.localeCompare(b));

/** "step · name", as outliers name it. */
export const labelOf = (told: {
  step?: string | null;
  name?: string | null;
}): string => [text(told.step), text(told.name)].filter(Boolean).join(' · ');

const readFinding = (told: Finding): Finding => ({
  check: text(told.check),
  severity:
    told.severity === 'warning' || told.severity === 'problem'
      ? told.severity
      : 'note',
  sentence: text(told.sentence),
  advice: text(told.advice),
});

const readFigure = (told: FleetFigure) => ({
  label: labelOf(told),
  unit: text(told.unit),
  nodes: number(told.nodes),
  median: number(told.median),
  /** About the relative spread of ordinary nodes. */
  spread: number(told.spread),
  p5: number(told.p5),
  p95: number(told.p95),
  least: number(told.least),
  greatest: number(told.greatest),
});

const readGroup = (told: FleetGroup) => ({
  name: text(told.name),
  nodes: number(told.nodes),
  identity: pairs(told.identity),
  figures: each(told.figures, readFigure),
});

const readOutlier = (told: FleetOutlier) => ({
  node: text(told.node),
  /** Place among the groups. */
  group: number(told.group),
  isSetting: optional(told.setting) !== null,
  figure: text(told.figure),
  unit: text(told.unit),
  value: number(told.value),
  typical: number(told.typical),
  ratio: number(told.ratio),
  adjustedP: number(told.adjusted_p),
  setting: optional(told.setting),
  typicalSetting: optional(told.typical_setting),
  record: text(told.record),
  sentence: text(told.sentence),
});

const readCommon = (told: FleetCommon) => ({
  group: number(told.group),
  figures: texts(told.figures),
  nodes: texts(told.nodes),
  setting: text(told.setting),
  value: text(told.value),
  outliersWith: number(told.outliers_with),
  othersWith: number(told.others_with),
  others: number(told.others),
  adjustedP: number(told.adjusted_p),
  sentence: text(told.sentence),
});

/** The report of a record. */
export function readReport(any: AnyRecord) {
  const record = any as FleetReport;
  return {
    id: text(record.id),
    fleet: text(record.fleet),
    submitted: text(record.submitted),
    started: text(record.started),
    host: text(record.host),
    tags: texts(record.tags),
    asked: number(record.asked),
    nodes: number(record.nodes),
    complete: number(record.complete),
    falseDiscoveryRate: number(record.false_discovery_rate),
    judged: number(record.judged),
    groups: each(record.groups, readGroup),
    outliers: each(record.outliers, readOutlier),
    common: each(record.common, readCommon),
    findings: each(record.findings, readFinding),
    sentence: text(record.sentence),
  };
}
