// The plan of a fleet: its studies, nodes and jobs; for a simulated one also its faults, and
// whether the report names them.

import { fill, h } from '../../dom';
import { count, minute, seconds } from '../../format';
import { items, list, text, texts } from '../../fields';
import { commandList } from '../../headline';
import { mapNumber } from '../../numbers';
import type { FleetRecord } from '../../records';
import type { AnyRecord } from '../../source';
import { sortableTable } from '../../sortable';
import { tableElement } from '../../table';
import type { Page, View } from '../../view';
import {
  facts,
  section,
  shellWords,
  recordLink,
  recordHref,
} from '../../words';
import { missingReport, loadReport, fleetTag } from '../fleet-report/at-hand';
import { nodeLists } from '../fleet-report/lists';
import { readReport } from '../fleet-report/record';
import { formatAddress } from '../history/shape';

/** Draws a `pinwise.fleet/1`. */
export function fleetPlanView(record: AnyRecord, page: Page): View {
  const plan = record as FleetRecord;
  const id = plan.id ?? '';
  const [nodes, leftOut] = [texts(plan.nodes), texts(plan.left_out)];
  const isOnSite = page.source.kind === 'site' && id !== '';
  const report = h('div');
  const planted = h('div');
  let isGone = false;
  fill(planted, faultsPart(plan, null, page));
  void loadReport(id, page.source).then((found) => {
    if (isGone) return;
    if (!found) {
      fill(report, isOnSite && missingReport(id));
      return;
    }
    const read = readReport(found);
    fill(
      report,
      h(
        'p',
        h('strong', read.sentence),
        ' ',
        recordLink(read.id ?? '', 'The report'),
      ),
    );
    fill(
      planted,
      faultsPart(
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
      `${count(plan.asked, 'node')}${plan.launcher ? ` (${plan.launcher})` : ''} ${plan.asked === 1 ? 'runs' : 'each run'} ${describeSteps(plan)}.`,
    ),
    report,
    !isOnSite &&
      id !== '' &&
      commandList([
        ['State of each node', `pinwise fleet status ${shellWords([id])}`],
      ]),
    isOnSite &&
      h(
        'p',
        h(
          'a',
          { href: formatAddress({ tag: fleetTag(id) }) },
          'All records of this fleet',
        ),
      ),
    section('What every node runs', stepTable(plan)),
    planted,
    nodes.length > 0 &&
      section(
        'Requested nodes',
        nodeLists(() => nodes, 'the requested nodes').element,
      ),
    leftOut.length > 0 &&
      section('Nodes left out', h('ul', ...leftOut.map((why) => h('li', why)))),
    list(plan.jobs).length > 0 && section('Jobs', jobTable(plan)),
    section(
      'How it was submitted',
      facts({
        Submitted: plan.started && `${minute(plan.started)} UTC`,
        From: plan.host,
        Launcher: plan.launcher,
        Folder: plan.folder,
        pinwise: plan.pinwise_version,
        Tags: texts(plan.tags).join(', '),
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

/** Steps that the headline names; of more it gives the number. */
const MAX_NAMED = 3;

function describeSteps(plan: FleetRecord): string {
  const names = items(plan.steps).map(({ name }) => text(name));
  const shown = names.slice(0, MAX_NAMED).join(', ');
  const more = names.length > MAX_NAMED ? ', …' : '';
  return `${count(names.length, 'step')}${shown && `: ${shown}${more}`}`;
}

function stepTable(plan: FleetRecord): HTMLElement {
  if (list(plan.steps).length === 0) return h('p.muted', 'No steps recorded.');
  return tableElement({
    caption: 'Steps, in this order',
    columns: ['Step', 'Command', { name: 'Longest time', isNumber: true }],
    rows: items(plan.steps).map((step) => [
      step.name,
      h('code', `pinwise ${shellWords(texts(step.arguments))}`),
      mapNumber(step.timeout_s, seconds),
    ]),
  });
}

const jobTable = (plan: FleetRecord): HTMLElement =>
  sortableTable({
    caption: 'Jobs, as the scheduler calls them',
    columns: ['Job', 'Node', 'Submitted, UTC'],
    rows: items(plan.jobs).map((job) => [
      { text: job.id ?? '' },
      { text: job.node || 'whichever is free' },
      { text: minute(job.submitted ?? '') },
    ]),
  }).element;

/** Faults of a simulated fleet, and whether the report names their nodes. */
function faultsPart(
  plan: FleetRecord,
  outlying: ReadonlySet<string> | null,
  page: Page,
): HTMLElement | null {
  const faults = items(plan.planted);
  if (faults.length === 0) return null;
  const nodes = new Set(faults.map((fault) => text(fault.node)));
  const found =
    outlying === null
      ? 0
      : [...nodes].filter((node) => outlying.has(node)).length;
  const rows = faults.map(({ node, fault }) => {
    const name = text(node);
    const id = `${plan.id}.${name}`;
    return [
      {
        text: name,
        href: page.source.has(id) ? recordHref(id) : undefined,
      },
      { text: text(fault) },
      ...(outlying ? [{ text: outlying.has(name) ? 'yes' : 'no' }] : []),
    ];
  });
  return section(
    'What was planted',
    h(
      'p',
      `This fleet is simulated: ${count(faults.length, 'fault was', 'faults were')} planted on ${count(nodes.size, 'node')}.${outlying ? ` The report names ${found.toLocaleString('en-US')} of these nodes, and ${count(outlying.size - found, 'other')}.` : ''}`,
    ),
    sortableTable({
      caption: 'Planted faults',
      columns: ['Node', 'Fault', ...(outlying ? ['Named by the report'] : [])],
      rows,
    }).element,
  );
}
