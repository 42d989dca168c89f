// The fields of "pinwise.fleet-report/1" that are drawn, read with care.

import type { Fields } from '../../fields';
import { each, fields, number, text, texts } from '../../fields';
import type { Finding } from '../../records';
import type { AnyRecord } from '../../source';

/** A figure over the nodes of a group. */
export interface GroupFigure {
  /** "step · name", as outliers name it. */
  label: string;
  unit: string;
  nodes: number | null;
  median: number | null;
  /** About the relative spread of ordinary nodes. */
  spread: number | null;
  p5: number | null;
  p95: number | null;
  least: number | null;
  greatest: number | null;
}

/** Nodes that should be alike. */
export interface Group {
  name: string;
  nodes: number | null;
  identity: [string, string][];
  figures: GroupFigure[];
}

/** A figure, or a setting, of a node that departs from its group. */
export interface Outlier {
  node: string;
  /** Place among the groups. */
  group: number | null;
  isSetting: boolean;
  figure: string;
  unit: string;
  value: number | null;
  typical: number | null;
  ratio: number | null;
  z: number | null;
  adjustedP: number | null;
  setting: string | null;
  typicalSetting: string | null;
  record: string;
  sentence: string;
}

/** What outliers have in common. */
export interface Common {
  group: number | null;
  figures: string[];
  nodes: string[];
  setting: string;
  value: string;
  outliersWith: number | null;
  othersWith: number | null;
  others: number | null;
  adjustedP: number | null;
  sentence: string;
}

export interface Report {
  id: string;
  fleet: string;
  submitted: string;
  started: string;
  host: string;
  tags: string[];
  asked: number | null;
  nodes: number | null;
  complete: number | null;
  falseDiscoveryRate: number | null;
  judged: number | null;
  groups: Group[];
  outliers: Outlier[];
  common: Common[];
  findings: Finding[];
  sentence: string;
}

const optional = (value: unknown): string | null =>
  typeof value === 'string' ? value : null;

/** Names and words, in the names' order. */
export const pairs = (value: unknown): [string, string][] =>
  Object.entries(fields(value))
    .filter((pair): pair is [string, string] => typeof pair[1] === 'string')
    .sort(([a], [b]) => a.localeCompare(b));

export const labelOf = (step: string, name: string): string =>
  [step, name].filter(Boolean).join(' · ');

export function readFinding(told: Fields): Finding | null {
  const severity = told['severity'];
  return {
    check: text(told['check']),
    severity:
      severity === 'warning' || severity === 'problem' ? severity : 'note',
    sentence: text(told['sentence']),
    advice: text(told['advice']),
  };
}

const readFigure = (told: Fields): GroupFigure => ({
  label: labelOf(text(told['step']), text(told['name'])),
  unit: text(told['unit']),
  nodes: number(told['nodes']),
  median: number(told['median']),
  spread: number(told['spread']),
  p5: number(told['p5']),
  p95: number(told['p95']),
  least: number(told['least']),
  greatest: number(told['greatest']),
});

const readOutlier = (told: Fields): Outlier => ({
  node: text(told['node']),
  group: number(told['group']),
  isSetting: optional(told['setting']) !== null,
  figure: text(told['figure']),
  unit: text(told['unit']),
  value: number(told['value']),
  typical: number(told['typical']),
  ratio: number(told['ratio']),
  z: number(told['z']),
  adjustedP: number(told['adjusted_p']),
  setting: optional(told['setting']),
  typicalSetting: optional(told['typical_setting']),
  record: text(told['record']),
  sentence: text(told['sentence']),
});

const readCommon = (told: Fields): Common => ({
  group: number(told['group']),
  figures: texts(told['figures']),
  nodes: texts(told['nodes']),
  setting: text(told['setting']),
  value: text(told['value']),
  outliersWith: number(told['outliers_with']),
  othersWith: number(told['others_with']),
  others: number(told['others']),
  adjustedP: number(told['adjusted_p']),
  sentence: text(told['sentence']),
});

/** The report of a record. */
export function readReport(record: AnyRecord): Report {
  return {
    id: text(record['id']),
    fleet: text(record['fleet']),
    submitted: text(record['submitted']),
    started: text(record['started']),
    host: text(record['host']),
    tags: texts(record['tags']),
    asked: number(record['asked']),
    nodes: number(record['nodes']),
    complete: number(record['complete']),
    falseDiscoveryRate: number(record['false_discovery_rate']),
    judged: number(record['judged']),
    groups: each(record['groups'], (told) => ({
      name: text(told['name']),
      nodes: number(told['nodes']),
      identity: pairs(told['identity']),
      figures: each(told['figures'], readFigure),
    })),
    outliers: each(record['outliers'], readOutlier),
    common: each(record['common'], readCommon),
    findings: each(record['findings'], readFinding),
    sentence: text(record['sentence']),
  };
}
