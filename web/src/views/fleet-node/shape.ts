// A node beside its peers: its group in a report, and its figures beside the typical ones of the
// group.

import { change, count, quantity, span } from '../../format';
import type { Cell } from '../../sortable';
import type { Group, Outlier, Report } from '../fleet-report/record';
import { withLabels, sortedEntries } from '../fleet-report/record';
import { items, text } from '../../fields';
import { filterMap } from '../../lists';
import { finite } from '../../numbers';
import type { FleetNode, Maybe } from '../../records';

/** The fields of a host by which reports group, with their names in reports. */
const HOST_TRAITS = [
  ['architecture', 'arch'],
  ['vendor', 'vendor'],
  ['cpu', 'cpu_model'],
  ['microcode', 'microcode'],
  ['kernel', 'kernel'],
  ['hypervisor', 'hypervisor'],
  ['topology', 'shape_hash'],
] as const;

/** Properties and settings of a node, by the names in reports. */
function nodeTraits(node: FleetNode): Map<string, string> {
  const own = filterMap(
    HOST_TRAITS,
    ([name, field]): [string, string] | null =>
      typeof node.host?.[field] === 'string' ? [name, node.host[field]] : null,
  );
  return new Map([...own, ...sortedEntries(node.settings)]);
}

/** The node's group: the report names it with the node's anomalies; otherwise the group that has the
 * most properties of the node. */
export function groupOfNode(node: FleetNode, report: Report): Group | null {
  const named = report.outliers.find(
    (outlier) => outlier.node === node.node,
  )?.group;
  if (named !== undefined && named !== null)
    return report.groups[named] ?? null;
  const known = nodeTraits(node);
  const shares = report.groups.map((group) => {
    const own = group.identity;
    const same = own.filter(([name, value]) => known.get(name) === value);
    return same.length / Math.max(1, own.length);
  });
  const best = Math.max(0, ...shares);
  // If two groups fit equally well, the group is unknown.
  return best > 0 && shares.filter((share) => share === best).length === 1
    ? report.groups[shares.indexOf(best)]!
    : null;
}

/** "3 of 4 steps done; failed: wiring; missing: kernels." */
export function describeSteps(node: FleetNode): string {
  const steps = items(node.steps);
  const namesOf = (state: string): string[] =>
    filterMap(steps, (step) =>
      step.state === state ? (step.name ?? '') : null,
    );
  const failed = namesOf('failed');
  const missing = namesOf('missing');
  return [
    `${namesOf('done').length} of ${steps.length} steps done`,
    failed.length > 0 ? `failed: ${failed.join(', ')}` : '',
    missing.length > 0 ? `missing: ${missing.join(', ')}` : '',
  ]
    .filter(Boolean)
    .join('; ')
    .concat('.');
}

/** The result: its anomalies if there is a report, and what its steps found. */
export function nodeSentence(
  node: FleetNode,
  outliers: readonly Outlier[] | null,
): string {
  const found = node.answer?.sentence || describeSteps(node);
  if (outliers === null) return found;
  return outliers.length > 0
    ? `${count(outliers.length, 'figure or setting differs', 'figures and settings differ')} from its peers. ${describeSteps(node)}`
    : `${found.replace(/\.$/, '')}; no anomaly beside its peers.`;
}

/** The report's findings on this node. */
export const nodeOutliers = (node: FleetNode, report: Report): Outlier[] =>
  report.outliers.filter((outlier) => outlier.node === node.node);

/** Figures beside the group's median; outliers are marked, and first. */
export function figureRows(
  node: FleetNode,
  group: Group | null,
  outliers: readonly Outlier[],
): Cell[][] {
  const typical = new Map(
    group?.figures.map((figure) => [figure.label, figure.median]),
  );
  const outlying = new Set(outliers.map((outlier) => outlier.figure));
  const rows = filterMap(
    withLabels(node.figures),
    ({ label, unit, value, low, high }) => {
      if (!finite(value)) return null;
      const middle = typical.get(label) ?? null;
      const ratio = middle ? value / middle : null;
      const row = [
        { text: label },
        { text: quantity(value, unit), sort: value },
        { text: quantity(middle, unit), sort: middle },
        { text: change(ratio), sort: ratio },
        { text: span(low, high, (end) => quantity(end, unit)) ?? '–' },
        { text: outlying.has(label) ? 'outlier' : '' },
      ];
      return row;
    },
  );
  return rows.sort((a, b) => Number(!a[5]!.text) - Number(!b[5]!.text));
}

/** What its steps compared: "gzip · one-core against os-default", with its interval. */
export const changeRows = (node: FleetNode): string[][] =>
  items(node.steps).flatMap((step) =>
    items(step.changes).map(({ of, change, interval, standing }) => [
      `${text(step.name)} · ${text(of)}`,
      text(change),
      text(interval) || '–',
      text(standing),
    ]),
  );

/** "3.2 s ahead"; empty if clocks agree, or are unknown. */
export function describeClock(ahead: Maybe<number>): string {
  if (!finite(ahead) || Math.abs(ahead) < 1) return '';
  return `${quantity(Math.abs(ahead), 's')} ${ahead > 0 ? 'ahead' : 'behind'}`;
}
