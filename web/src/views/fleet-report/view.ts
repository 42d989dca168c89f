// The report of a fleet: outliers, how they differ, and what they have in common.

import './fleet.css';

import { selectElement } from '../../controls';
import { h } from '../../dom';
import { count, minute, percent, wholeNumber } from '../../format';
import { commandList } from '../../headline';
import { texts } from '../../fields';
import { finite, mapNumber } from '../../numbers';
import { adviceLine, findingsPart, splitVerdict } from '../../method';
import type { AnyRecord } from '../../source';
import { sortableTable } from '../../sortable';
import type { Page, View } from '../../view';
import { facts, section, shellWords, recordHref } from '../../words';
import { numberColumns } from '../../table';
import { formatAddress } from '../history/shape';
import { heatMap } from './heat-map';
import { nodeLists } from './lists';
import { slurmList } from './hostlist';
import type { Common, Group, Outlier, Report } from './record';
import { isSetting, readReport } from './record';
import type { Link, OutlierFilter } from './shape';
import {
  pText,
  outlierNodes,
  countFigures,
  groupName,
  groupRange,
  missingWords,
  nodeId,
  openGroups,
  outlierRow,
  filterOutliers,
  groupStrips,
  splitStrips,
} from './shape';
import { stripChart } from './strips';

/** Maximum number of groups that are open at first. */
const MAX_OPEN_GROUPS = 2;

/** Maximum number of settings that are advised to check. */
const MAX_SETTINGS = 2;

/** Maximum number of outliers with which the table of anomalies is open at first. */
const MAX_OPEN_TABLES = 10;

/** Draws a `pinwise.fleet-report/1`. */
export function fleetReportView(record: AnyRecord, page: Page): View {
  const report = readReport(record);
  const link: Link = (id) => (page.source.has(id) ? recordHref(id) : undefined);
  const [answer, more] = splitVerdict(
    report.sentence || 'This report has no conclusion.',
  );
  const settings = report.outliers.filter(isSetting).slice(0, MAX_SETTINGS);
  const element = h(
    'article',
    h('p.verdict', answer),
    missingWords(report) && h('p.state.missing', missingWords(report)),
    ...settings.map(({ figure, node, setting, typical_setting: typical }) =>
      adviceLine(
        `Check ${figure} of ${node}: ${setting ?? '–'}; its peers have ${typical ?? '–'}.`,
      ),
    ),
    report.outliers.length > 0 &&
      commandList([
        [
          settings.length > 0 ? 'Then measure again' : 'Measure again',
          `pinwise fleet submit --nodelist ${shellWords([slurmList(report.outliers.map(({ node }) => node))])} STUDY.toml`,
        ],
      ]),
    report.outliers.length > 0 && outlierSection(report, link),
    more && h('p', more),
    missingCommands(report),
    relatedParts(report, page, link),
    report.common.length > 0 &&
      section(
        'What they have in common',
        ...report.common.map((common) => commonPart(common, report)),
      ),
    section('Groups of similar nodes', ...groupParts(report, page)),
    findingsPart(report.findings),
    methodPart(report),
  );
  return { element, dispose: () => undefined };
}

/** Commands that fetch the missing nodes. */
function missingCommands(report: Report): HTMLElement | null {
  if (!missingWords(report) || !report.fleet) return null;
  return commandList([
    [
      'state of each node',
      `pinwise fleet status ${shellWords([report.fleet])}`,
    ],
    [
      'submit what is missing',
      `pinwise fleet resume ${shellWords([report.fleet])}`,
    ],
  ]);
}

function relatedParts(
  report: Report,
  page: Page,
  link: Link,
): HTMLElement | null {
  const fleet = report.fleet ? link(report.fleet) : undefined;
  const links = [
    fleet === undefined ? null : h('a', { href: fleet }, 'What was requested'),
    page.source.kind === 'site' && report.fleet
      ? h(
          'a',
          { href: formatAddress({ tag: `fleet:${report.fleet}` }) },
          'All records of this fleet',
        )
      : null,
  ].filter((one) => one !== null);
  return links.length > 0 ? h('p.lists', ...links) : null;
}

const COLUMNS = [
  'Node',
  'Figure or setting',
  ...numberColumns('Value', 'Typical', 'Change', 'q'),
];

/** A map of nodes and figures, the list of nodes, and both tables; one filter applies to all. */
function outlierSection(report: Report, link: Link): HTMLElement {
  const narrowing: OutlierFilter & { nodes: Set<string> } = {
    group: null,
    figure: null,
    nodes: new Set(),
  };
  const shown = (): Outlier[] => filterOutliers(report.outliers, narrowing);
  const table = () => ({
    caption: 'All anomalies, each with its false-discovery rate q',
    columns: COLUMNS,
    rows: shown().map((outlier) => outlierRow(outlier, report, link)),
  });
  const isSmall = outlierNodes(report.outliers).length <= MAX_OPEN_TABLES;
  const each = sortableTable(table());
  const lists = nodeLists(
    () => shown().map((outlier) => outlier.node),
    'the outliers',
  );
  const map = heatMap(report, (names) => {
    toggle(narrowing.nodes, names);
    show();
  });
  const controls = filterControls(report, narrowing, () => show());
  const show = (): void => {
    controls.sync();
    const { group, figure } = narrowing;
    map.show(
      filterOutliers(report.outliers, { group, figure }),
      narrowing.nodes,
    );
    each.show(table());
    lists.refresh();
  };
  show();
  return section(
    'Outliers',
    map.element,
    controls.element,
    lists.element,
    h(
      'details.outliers',
      { open: isSmall },
      h('summary', 'Every anomaly'),
      each.element,
    ),
  );
}

/** Adds names, or removes them if all are included. */
function toggle(set: Set<string>, names: readonly string[]): void {
  const areIn = names.every((name) => set.has(name));
  for (const name of names) {
    if (areIn) set.delete(name);
    else set.add(name);
  }
}

/** Controls of the filter. */
function filterControls(
  report: Report,
  narrowing: OutlierFilter & { nodes: Set<string> },
  show: () => void,
): { element: HTMLElement; sync(): void } {
  const groups = [...new Set(report.outliers.map((outlier) => outlier.group))]
    .filter(finite)
    .sort((a, b) => a - b);
  const group = selectElement(
    [
      ['', 'all'],
      ...groups.map((at) => option(at, groupName(report.groups, at))),
    ],
    (value) => {
      narrowing.group = value === '' ? null : Number(value);
      show();
    },
  );
  const figures = countFigures(report.outliers);
  const figure = selectElement(
    [
      ['', 'all'],
      ...figures.map(([name, times], at) => option(at, `${name} (${times})`)),
    ],
    (value) => {
      narrowing.figure =
        value === '' ? null : (figures[Number(value)]?.[0] ?? null);
      show();
    },
  );
  const all = h(
    'button',
    {
      onclick: () => {
        narrowing.group = narrowing.figure = null;
        narrowing.nodes.clear();
        show();
      },
    },
    'All outliers',
  );
  return {
    element: h(
      'div.controls',
      ...(groups.length > 1 ? [h('label', 'Group ', group)] : []),
      ...(figures.length > 1 ? [h('label', 'Figure or setting ', figure)] : []),
      all,
    ),
    sync: () => {
      group.value = narrowing.group === null ? '' : `${narrowing.group}`;
      const at = figures.findIndex(([name]) => name === narrowing.figure);
      figure.value = at < 0 ? '' : `${at}`;
      all.hidden =
        narrowing.group === null &&
        narrowing.figure === null &&
        narrowing.nodes.size === 0;
    },
  };
}

const option = (at: number, name: string): [string, string] => [`${at}`, name];

function commonPart(common: Common, report: Report): HTMLElement {
  const what = common.setting || 'this setting';
  const share = !finite(common.outliers_with)
    ? null
    : `${wholeNumber(common.outliers_with)} of ${wholeNumber(common.nodes.length)} outliers; ${wholeNumber(common.others_with)} of ${wholeNumber(common.others)} others of the group`;
  return h(
    'div',
    h(
      'p',
      h('strong', common.sentence || `${common.setting} = ${common.value}`),
    ),
    facts({
      Setting: common.setting && `${common.setting} = ${common.value}`,
      'Found on': share,
      'Differ in': common.figures.join(', '),
      Group: mapNumber(common.group, (group) =>
        groupName(report.groups, group),
      ),
      'Adjusted p': mapNumber(common.adjusted_p, pText),
    }),
    nodeLists(() => common.nodes, `the nodes with ${what}`).element,
  );
}

function groupParts(report: Report, page: Page): HTMLElement[] {
  const open = openGroups(report, MAX_OPEN_GROUPS);
  return report.groups.map((group, at) =>
    groupPart(group, at, open.has(at), report, page),
  );
}

function groupPart(
  group: Group,
  at: number,
  open: boolean,
  report: Report,
  page: Page,
): HTMLElement {
  const own = report.outliers.filter((outlier) => outlier.group === at);
  const nodes = outlierNodes(own).length;
  const body = h('div');
  const details = h(
    'details.group',
    { open },
    h(
      'summary',
      h('strong', groupName(report.groups, at)),
      `: ${count(group.nodes, 'node')}, ${nodes === 0 ? 'no outlier' : count(nodes, 'outlier')}`,
    ),
    body,
  );
  const draw = (): void => {
    if (!details.open || body.hasChildNodes()) return;
    body.append(groupStripChart(group, own, report, page), identityPart(group));
  };
  details.addEventListener('toggle', draw);
  draw();
  return details;
}

const identityPart = (group: Group): HTMLElement =>
  h(
    'details.figures',
    h(
      'summary',
      `What they are alike in: ${group.identity
        .map(([name]) => name)
        .slice(0, 4)
        .join(', ')}${group.identity.length > 4 ? ' …' : ''}`,
    ),
    facts(Object.fromEntries(group.identity)),
  );

function groupStripChart(
  group: Group,
  own: readonly Outlier[],
  report: Report,
  page: Page,
): HTMLElement {
  const all = groupStrips(group, own);
  if (all.length === 0) return h('p.muted', 'This group has no figures.');
  const choose = own.some((outlier) =>
    page.source.has(nodeId(report, outlier.node)),
  )
    ? (outlier: Outlier): void =>
        page.go(recordHref(nodeId(report, outlier.node)))
    : null;
  const range = groupRange(group, own);
  const [shown, folded] = splitStrips(all);
  return h(
    'div',
    h(
      'p.muted',
      'Each figure as a ratio to its median: the box holds nodes from the 5th to the 95th percentile, the line reaches from the least to the greatest, dots are outliers.',
    ),
    stripChart(shown, range, choose),
    folded.length > 0 &&
      h(
        'details',
        h('summary', `${count(folded.length, 'figure')} without outliers`),
        stripChart(folded, range, choose),
      ),
  );
}

function methodPart(report: Report): HTMLElement {
  const rate = report.false_discovery_rate;
  return section(
    'How it was judged',
    h(
      'p',
      `Each figure of a node is compared with those of its group.${!finite(rate) ? '' : ` At most ${percent(rate, 0)} of the anomalies are expected to be chance (false-discovery rate).`} docs/fleet.md has the method.`,
    ),
    facts({
      Fleet: report.fleet,
      Submitted: report.submitted && `${minute(report.submitted)} UTC`,
      Judged: report.started && `${minute(report.started)} UTC`,
      On: report.host,
      Nodes: `${wholeNumber(report.asked)} requested, ${wholeNumber(report.nodes)} with a record, ${wholeNumber(report.complete)} complete`,
      'Figures judged': mapNumber(report.judged, wholeNumber),
      Named: `${count(report.outliers.length, 'figure or setting', 'figures and settings')} of ${count(outlierNodes(report.outliers).length, 'node')}`,
      Tags: texts(report.tags).join(', '),
    }),
  );
}
