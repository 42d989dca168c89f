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
export const labelOf = (raw: {
  step?: string | null;
  name?: string | null;
}): string => [text(raw.step), text(raw.name)].filter(Boolean).join(' · ');

const readFinding = (raw: Finding): Finding => ({
  check: text(raw.check),
  severity:
    raw.severity === 'warning' || raw.severity === 'problem'
      ? raw.severity
      : 'note',
  sentence: text(raw.sentence),
  advice: text(raw.advice),
});

const readFigure = (raw: FleetFigure) => ({
  label: labelOf(raw),
  unit: text(raw.unit),
  nodes: number(raw.nodes),
  median: number(raw.median),
  /** About the relative spread of ordinary nodes. */
  spread: number(raw.spread),
  p5: number(raw.p5),
  p95: number(raw.p95),
  least: number(raw.least),
  greatest: number(raw.greatest),
});

const readGroup = (raw: FleetGroup) => ({
  name: text(raw.name),
  nodes: number(raw.nodes),
  identity: pairs(raw.identity),
  figures: each(raw.figures, readFigure),
});

const readOutlier = (raw: FleetOutlier) => ({
  node: text(raw.node),
  /** Place among the groups. */
  group: number(raw.group),
  isSetting: optional(raw.setting) !== null,
  figure: text(raw.figure),
  unit: text(raw.unit),
  value: number(raw.value),
  typical: number(raw.typical),
  ratio: number(raw.ratio),
  adjustedP: number(raw.adjusted_p),
  /** Distance in robust standard deviations of its group. */
  z: number(raw.z),
  setting: optional(raw.setting),
  typicalSetting: optional(raw.typical_setting),
  record: text(raw.record),
  sentence: text(raw.sentence),
});

const readCommon = (raw: FleetCommon) => ({
  group: number(raw.group),
  figures: texts(raw.figures),
  nodes: texts(raw.nodes),
  setting: text(raw.setting),
  value: text(raw.value),
  outliersWith: number(raw.outliers_with),
  othersWith: number(raw.others_with),
  others: number(raw.others),
  adjustedP: number(raw.adjusted_p),
  sentence: text(raw.sentence),
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
