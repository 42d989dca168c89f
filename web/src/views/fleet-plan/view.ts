// The plan of a fleet: its studies, nodes and jobs; for a simulated one also its faults, and
// whether the report names them.

import { fill, h } from '../../dom';
import { count, minute, seconds } from '../../format';
import type { AnyRecord } from '../../source';
import { sortableTable } from '../../sortable';
import { tableElement } from '../../table';
import type { Page, View } from '../../view';
import { facts, section, shellWords } from '../../words';
import { missingReport, reportOf, tagOf } from '../fleet-report/at-hand';
import { nodeLists } from '../fleet-report/lists';
import { readReport } from '../fleet-report/record';
import { addressOf } from '../history/shape';
import { type Plan, readPlan } from './record';

/** Names that a sentence lists; the rest are only counted. */
const MAX_NAMED = 40;

/** Draws a `pinwise.fleet/1`. */
export function fleetPlanView(record: AnyRecord, page: Page): View {
  const plan = readPlan(record);
  const report = h('div');
  const planted = h('div');
  let isGone = false;
  fill(planted, plantedPart(plan, null, page));
  void reportOf(plan.id, page.source).then((found) => {
    if (isGone) return;
    if (!found) {
      fill(
        report,
        page.source.kind === 'site' && plan.id ? missingReport(plan.id) : null,
      );
      return;
    }
    const read = readReport(found);
    fill(
      report,
      h(
        'p',
        h('strong', read.sentence),
        ' ',
        h(
          'a',
          { href: `#/record/${encodeURIComponent(read.id)}` },
          'The report',
        ),
      ),
    );
    fill(
      planted,
      plantedPart(
        plan,
        new Set(read.outliers.map((outlier) => outlier.node)),
        page,
      ),
    );
  });
  const element = h(
    'article',
    h(
      'p.verdict',
      `${count(plan.asked, 'node')} asked${plan.launcher ? `, by ${plan.launcher}` : ''}.`,
    ),
    report,
    page.source.kind === 'site' && plan.id
      ? h(
          'p',
          h(
            'a',
            { href: addressOf({ tag: tagOf(plan.id) }) },
            'All records of this fleet',
          ),
        )
      : null,
    section('What every node runs', steps(plan)),
    planted,
    plan.nodes.length > 0
      ? section(
          'Nodes asked by name',
          h('p', joinNames(plan.nodes)),
          nodeLists(() => plan.nodes, 'the nodes asked').element,
        )
      : null,
    plan.leftOut.length > 0
      ? section(
          'Nodes that were not asked',
          h('ul', ...plan.leftOut.map((why) => h('li', why))),
        )
      : null,
    plan.jobs.length > 0 ? section('Jobs', jobs(plan)) : null,
    section(
      'How it was submitted',
      facts({
        Submitted: plan.started && `${minute(plan.started)} UTC`,
        From: plan.host,
        Launcher: plan.launcher,
        Folder: plan.folder,
        pinwise: plan.pinwise,
        Tags: plan.tags.join(', '),
      }),
    ),
  );
  return {
    element,
    dispose: () => {
      isGone = true;
    },
  };
}

const joinNames = (names: readonly string[]): string =>
  names.slice(0, MAX_NAMED).join(', ') +
  (names.length > MAX_NAMED
    ? ` and ${(names.length - MAX_NAMED).toLocaleString('en-US')} more`
    : '');

function steps(plan: Plan): HTMLElement {
  if (plan.steps.length === 0) return h('p.muted', 'No steps recorded.');
  return tableElement({
    caption: 'Steps, in this order',
    columns: ['Step', 'Command', { name: 'Longest time', isNumber: true }],
    rows: plan.steps.map((step) => [
      step.name,
      h('code', `pinwise ${shellWords(step.words)}`),
      step.timeoutS === null ? null : seconds(step.timeoutS),
    ]),
  });
}

const jobs = (plan: Plan): HTMLElement =>
  sortableTable({
    caption: 'Jobs, as the scheduler calls them',
    columns: ['Job', 'Node', 'Submitted, UTC'],
    rows: plan.jobs.map((job) => [
      { text: job.id },
      { text: job.node || 'whichever is free' },
      { text: minute(job.submitted) },
    ]),
  }).element;

/** Faults of a simulated fleet, and whether the nodes that have them are named. */
function plantedPart(
  plan: Plan,
  outlying: ReadonlySet<string> | null,
  page: Page,
): HTMLElement | null {
  if (plan.planted.length === 0) return null;
  const nodes = new Set(plan.planted.map((fault) => fault.node));
  const found =
    outlying === null
      ? 0
      : [...nodes].filter((node) => outlying.has(node)).length;
  const rows = plan.planted.map(({ node, fault }) => {
    const id = `${plan.id}.${node}`;
    return [
      {
        text: node,
        href: page.source.has(id)
          ? `#/record/${encodeURIComponent(id)}`
          : undefined,
      },
      { text: fault },
      ...(outlying ? [{ text: outlying.has(node) ? 'yes' : 'no' }] : []),
    ];
  });
  return section(
    'What was planted',
    h(
      'p',
      `This fleet is simulated: ${count(plan.planted.length, 'fault was', 'faults were')} planted on ${count(nodes.size, 'node')}.${outlying ? ` The report names ${found.toLocaleString('en-US')} of these nodes, and ${count(outlying.size - found, 'other')}.` : ''}`,
    ),
    sortableTable({
      caption: 'Planted faults',
      columns: ['Node', 'Fault', ...(outlying ? ['Named by the report'] : [])],
      rows,
    }).element,
  );
}
