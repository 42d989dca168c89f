// A node of a fleet: its steps and how they ended, its settings, and its figures beside those of
// its peers if there is a report.

import { fill, h } from '../../dom';
import { minute, seconds } from '../../format';
import { items, text, texts } from '../../fields';
import type { Group, Outlier, Report } from '../fleet-report/record';
import { sortedEntries, readReport } from '../fleet-report/record';
import type { FleetNode } from '../../records';
import { commandList } from '../../headline';
import { adviceLine } from '../../method';
import type { AnyRecord } from '../../source';
import { sortableTable } from '../../sortable';
import { tableElement, numberColumns } from '../../table';
import type { Page, View } from '../../view';
import { facts, hostFacts, section, recordLink, shellWords } from '../../words';
import { missingReport, loadReport } from '../fleet-report/at-hand';
import {
  changeRows,
  describeClock,
  nodeOutliers,
  figureRows,
  groupOfNode,
  nodeSentence,
} from './shape';

/** Draws a `pinwise.fleet-node/1`; a report's findings on it are added once it has loaded. */
export function fleetNodeView(record: AnyRecord, page: Page): View {
  const node = record as FleetNode;
  const element = h('article');
  let isGone = false;
  draw(element, node, page, null);
  void loadReport(text(node.fleet), page.source).then((found) => {
    if (!isGone && found) draw(element, node, page, readReport(found));
  });
  return {
    element,
    dispose: () => {
      isGone = true;
    },
  };
}

function draw(
  element: HTMLElement,
  node: FleetNode,
  page: Page,
  report: Report | null,
): void {
  const group = report && groupOfNode(node, report);
  const outliers = report ? nodeOutliers(node, report) : [];
  fill(
    element,
    h('p.verdict', nodeSentence(node, report && outliers)),
    outlierList(outliers),
    outliers.length > 0 &&
      commandList([
        [
          'Measure it again',
          `pinwise fleet submit --nodelist ${shellWords([text(node.node)])} STUDY.toml`,
        ],
      ]),
    reportLink(node, page, report),
    // The verdict of a single step is the headline.
    items(node.steps).length > 1 && section('What ran', stepTable(node, page)),
    ...verdictLinks(node, page),
    changesTable(node),
    figuresPart(node, group, outliers),
    h(
      'details',
      h('summary', 'What ran, settings, machine'),
      items(node.steps).length < 2 &&
        section('What ran', stepTable(node, page)),
      sortedEntries(node.settings).length > 0 && settingsPart(node, group),
      machinePart(node),
    ),
  );
}

const outlierList = (outliers: readonly Outlier[]): HTMLElement | null =>
  outliers.length === 0
    ? null
    : h(
        'ul.findings',
        ...outliers.map((outlier) =>
          h('li.warning', outlier.sentence || outlier.figure),
        ),
      );

function reportLink(
  node: FleetNode,
  page: Page,
  report: Report | null,
): HTMLElement | null {
  if (report)
    return h('p', recordLink(text(report.id), 'The report of its fleet'));
  if (!node.fleet) return null;
  const isDone = items(node.steps).every(({ state }) => state === 'done');
  return page.source.kind === 'site' && isDone
    ? missingReport(node.fleet)
    : adviceLine(node.answer?.advice);
}

/** Steps whose verdicts are linked above the figures; the table has all. */
const MAX_LINKS = 3;

/** Where the verdict of each step is. */
const verdictLinks = (node: FleetNode, { source }: Page): Node[] =>
  items(node.steps)
    .filter(({ record }) => record)
    .slice(0, MAX_LINKS)
    .filter(({ record }) => source.has(record!))
    .map(({ name, record }) =>
      h('p', recordLink(record!, `Verdict of ${text(name)}`)),
    );

function stepTable(node: FleetNode, page: Page): HTMLElement {
  if (!node.steps?.length) return h('p.muted', 'Nothing was asked of it.');
  return tableElement({
    caption: 'Steps',
    columns: [
      'Step',
      'State',
      'Verdict',
      ...numberColumns('Attempt', 'Took'),
      'Record',
      'Why',
    ],
    rows: items(node.steps).map((step) => [
      step.name,
      step.state,
      step.verdict,
      step.attempt,
      seconds(step.elapsed_s),
      step.record && page.source.has(step.record)
        ? recordLink(step.record, step.record)
        : step.record
          ? h('code', `pinwise record show ${shellWords([step.record])}`)
          : null,
      step.why ?? '',
    ]),
  });
}

/** What its steps compared; null if nothing. */
function changesTable(node: FleetNode): HTMLElement | null {
  const rows = changeRows(node);
  return rows.length === 0
    ? null
    : tableElement({
        caption: 'What its steps compared, run by run',
        columns: [
          'Change of',
          ...numberColumns('Change', 'Interval'),
          'Verdict',
        ],
        rows,
      });
}

function figuresPart(
  node: FleetNode,
  group: Group | null,
  outliers: readonly Outlier[],
): HTMLElement | null {
  const rows = figureRows(node, group, outliers);
  if (rows.length === 0) return null;
  return section(
    'Figures',
    sortableTable({
      caption:
        group === null
          ? 'Figures of the node'
          : `Figures of the node, beside the medians of ${group.name}`,
      columns: [
        'Figure',
        ...numberColumns('Value', 'Typical', 'Change', 'Interval'),
        'Beside its group',
      ],
      rows,
    }).element,
  );
}

function settingsPart(node: FleetNode, group: Group | null): HTMLElement {
  const typical = new Map(group?.identity);
  return section(
    'Settings',
    tableElement({
      caption: group
        ? `Settings, and what most of ${group.name} have`
        : 'Settings of the node',
      columns: ['Setting', 'Here', ...(group ? ['Most of its group'] : [])],
      rows: sortedEntries(node.settings).map(([name, value]) => {
        const most = typical.get(name);
        const here =
          most !== undefined && most !== value ? h('strong', value) : value;
        return [name, here, ...(group ? [most ?? null] : [])];
      }),
    }),
  );
}

const machinePart = (node: FleetNode): HTMLElement =>
  section(
    'Machine',
    facts({
      ...hostFacts(node.host),
      Fleet: node.fleet,
      Began: node.started && `${minute(node.started)} UTC, by its own clock`,
      Ended: node.ended ? `${minute(node.ended)} UTC` : 'steps are missing',
      Attempts: node.attempts,
      'Its clock': describeClock(node.clock_ahead_s),
      Tags: texts(node.tags).join(', '),
    }),
  );
