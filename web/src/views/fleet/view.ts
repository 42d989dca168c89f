// The fleet: nodes by figures, coloured by their ratio to the median of their equals, and the
// outliers as sentences.

import { h, visible } from '../../dom';
import { count, quantity } from '../../format';
import { colourAt, inkOn } from '../../colour-scale';
import type { Entry, Source } from '../../source';
import { onTheme, theme } from '../../theme';
import type { Page, Part } from '../../view';
import { commandLine, section, recordHref } from '../../words';
import type { Cell, Column, Fleet, Node } from './shape';
import { chancePercent, fleetOf, MIN_GROUP, timesMark, Z_LIMIT } from './shape';
import { fleetsOf, fleetsPart } from './fleets';

/** Newest records of each kind that are looked through; hosts beyond are requested one by one. */
const MAX_RECORDS_PER_KIND = 1000;
const MAX_RECORDS_PER_HOST = 50;
const MAX_HOSTS = 200;
const MAX_FINDINGS = 30;
/** Columns that fit a page, and paper. */
const MAX_COLUMNS = 9;
const ROWS_AT_A_TIME = 100;

/** The view of all fleets, and of all hosts' newest records. */
export async function fleetView(page: Page): Promise<Part> {
  document.title = 'Fleet · pinwise';
  const [fleets, looked] = await Promise.all([
    fleetsOf(page.source),
    newestOfAll(page.source),
  ]);
  const fleet = fleetOf(looked.entries);
  const part = fleetsPart(fleets, page.source);
  const painted: (() => void)[] = [];
  const element = h(
    'div',
    h('h1', 'Fleet'),
    part,
    ...hostParts(fleet, looked, part !== null, painted),
  );
  const paint = (): void => painted.forEach((one) => one());
  paint();
  const stop = onTheme(paint);
  return { element, dispose: stop };
}

/** Hosts beside their peers, whether or not they are of a fleet. */
function hostParts(
  fleet: Fleet,
  looked: Looked,
  hasFleets: boolean,
  painted: (() => void)[],
): (HTMLElement | null)[] {
  if (fleet.nodes.length < 2 || fleet.columns.length === 0)
    return hasFleets ? [] : [tooFew(fleet)];
  const verdict = visible(verdictOf(fleet));
  return [
    hasFleets
      ? h('section', h('h2', "Each host's newest figures"), h('p', verdict))
      : h('p.verdict', verdict),
    looked.left > 0
      ? h(
          'p.muted',
          `Of each kind of record the newest ${MAX_RECORDS_PER_KIND.toLocaleString('en-US')} are looked through; ${count(looked.left, 'older one is', 'older ones are')} not.`,
        )
      : null,
    fleet.findings.length > 0 ? findings(fleet) : null,
    section(
      'Nodes by figures',
      explanation(fleet),
      ...figureTables(fleet, painted),
    ),
    section(
      'Groups of similar hosts',
      h(
        'ul',
        ...fleet.groups.map((group) =>
          h('li', `${group.name}: ${count(group.nodes, 'node')}`),
        ),
      ),
    ),
    method(fleet),
  ];
}

interface Looked {
  entries: Entry[];
  /** Records that were not looked through. */
  left: number;
}

/** Kinds of records that have no figures of a host: ten thousand nodes of a fleet are not fetched. */
const OF_FLEETS = /^pinwise\.fleet/;

async function newestOfAll(source: Source): Promise<Looked> {
  const { schemas, hosts } = await source.list({ limit: 1 });
  const kinds = schemas.filter((schema) => !OF_FLEETS.test(schema));
  const listings = await Promise.all(
    kinds.map((schema) => source.list({ schema, limit: MAX_RECORDS_PER_KIND })),
  );
  const entries = listings.flatMap((listing) => listing.records);
  const left = listings.reduce(
    (sum, listing) => sum + listing.total - listing.records.length,
    0,
  );
  if (left === 0) return { entries, left };
  const seen = new Set(entries.map((entry) => entry.host));
  const missing = hosts.filter((host) => !seen.has(host));
  if (missing.length > MAX_HOSTS) return { entries, left };
  for (const host of missing)
    entries.push(
      ...(await source.list({ host, limit: MAX_RECORDS_PER_HOST })).records,
    );
  return { entries, left };
}

const tooFew = (fleet: Fleet): HTMLElement =>
  h(
    'div',
    h(
      'p',
      fleet.nodes.length < 2
        ? `${count(fleet.nodes.length, 'host')} so far: a comparison takes two or more.`
        : 'No figure was measured on two nodes: measure the same on each.',
    ),
    h('p', 'Measure each machine, export its record, and open them together:'),
    commandLine(
      'pinwise topology --measure --format json > NODE.json',
      'the command that measures a node',
    ),
    commandLine(
      'pinwise record report NODE1.json NODE2.json -o fleet.html',
      'the command that writes the report',
    ),
  );

function verdictOf(fleet: Fleet): string {
  const size = `${count(fleet.nodes.length, 'node')} in ${count(fleet.groups.length, 'group')} of similar machines, ${count(fleet.columns.length, 'figure')}`;
  if (fleet.findings.length > 0) {
    const nodes = new Set(fleet.findings.map((finding) => finding.host)).size;
    return `${count(nodes, 'node differs', 'nodes differ')} from ${nodes === 1 ? 'its' : 'their'} peers, in ${count(fleet.findings.length, 'figure')} (${size}).`;
  }
  const large = fleet.groups.some((group) => group.nodes >= MIN_GROUP);
  return large
    ? `No node differs from its peers (${size}).`
    : `Groups are too small to name outliers (fewer than ${MIN_GROUP} nodes); figures are shown beside the median of their group (${size}).`;
}

function findings(fleet: Fleet): HTMLElement {
  const shown = fleet.findings.slice(0, MAX_FINDINGS);
  const more = fleet.findings.length - shown.length;
  return section(
    'Outliers, worst first',
    h(
      'ul.findings',
      ...shown.map((finding) =>
        h(
          'li.warning',
          finding.sentence,
          ' ',
          h(
            'a',
            {
              href: recordHref(finding.cell.record),
              aria: {
                label: `The record of ${finding.host}, ${finding.column.name}`,
              },
            },
            'Record',
          ),
        ),
      ),
    ),
    more > 0 &&
      h(
        'p.muted',
        `${count(more, 'more is', 'more are')} marked in the table.`,
      ),
  );
}

const explanation = (fleet: Fleet): HTMLElement => {
  const small = fleet.groups.filter((group) => group.nodes < MIN_GROUP).length;
  const said =
    small > 0
      ? ` ${count(small, 'group has', 'groups have')} fewer than ${MIN_GROUP} nodes: only their ratio is shown.`
      : '';
  return h(
    'p.muted',
    `Each figure and its ratio to the median of the node's group. ▲ and ▼ mark outliers above and below; colour is the ratio, from half to double.${said}`,
  );
};

/** A question's figures in tables as wide as a page; most nodes first. */
function figureTables(fleet: Fleet, painted: (() => void)[]): HTMLElement[] {
  const columnsOf = (question: string): Column[] =>
    fleet.columns.filter((column) => column.question === question);
  const nodesOf = (columns: readonly Column[]): Node[] =>
    fleet.nodes.filter((node) =>
      columns.some((column) => node.cells.has(column.key)),
    );
  const questions = [...new Set(fleet.columns.map((column) => column.question))]
    .map((question) => ({
      question,
      columns: columnsOf(question),
      nodes: nodesOf(columnsOf(question)),
    }))
    .sort(
      (a, b) =>
        b.nodes.length - a.nodes.length || a.question.localeCompare(b.question),
    );
  return questions.flatMap(({ question, columns, nodes }) => {
    const tables: HTMLElement[] = [];
    const width = Math.ceil(
      columns.length / Math.ceil(columns.length / MAX_COLUMNS),
    );
    for (let at = 0; at < columns.length; at += width) {
      const some = columns.slice(at, at + width);
      const part =
        columns.length > MAX_COLUMNS
          ? `, figures ${at + 1} to ${at + some.length} of ${columns.length}`
          : '';
      tables.push(
        figureTable(
          visible(`${question}, ${count(nodes.length, 'node')}${part}`),
          nodes,
          some,
          painted,
        ),
      );
    }
    return tables;
  });
}

function figureTable(
  caption: string,
  nodes: readonly Node[],
  columns: readonly Column[],
  painted: (() => void)[],
): HTMLElement {
  const { body, more } = rowsOf(nodes, columns, painted);
  return h(
    'div.scroll',
    { role: 'region', tabIndex: 0, aria: { label: caption } },
    h(
      'table.fleet',
      h('caption', caption),
      h(
        'thead',
        h(
          'tr',
          h('th', { scope: 'col' }, 'Node'),
          ...columns.map((column) =>
            h(
              'th',
              { scope: 'col' },
              column.unit ? `${column.name}, ${column.unit}` : column.name,
            ),
          ),
        ),
      ),
      body,
    ),
    more,
  );
}

/** Rows, a page at a time: outliers come first. */
function rowsOf(
  nodes: readonly Node[],
  columns: readonly Column[],
  painted: (() => void)[],
): { body: HTMLElement; more: HTMLElement } {
  const body = h('tbody');
  const more = h('button.more');
  const draw = (): void => {
    const at = body.childElementCount;
    const from = painted.length;
    body.append(
      ...nodes
        .slice(at, at + ROWS_AT_A_TIME)
        .map((node) => row(node, columns, painted)),
    );
    // Boxes drawn later are not painted with the view.
    if (at > 0) painted.slice(from).forEach((paint) => paint());
    const left = nodes.length - body.childElementCount;
    more.hidden = left <= 0;
    more.textContent = `Show ${Math.min(ROWS_AT_A_TIME, left)} more of ${left.toLocaleString('en-US')} nodes`;
  };
  more.addEventListener('click', draw);
  draw();
  return { body, more };
}

function row(
  node: Node,
  columns: readonly Column[],
  painted: (() => void)[],
): HTMLElement {
  return h(
    'tr',
    h('th', { scope: 'row', title: node.group }, node.host || 'unknown'),
    ...columns.map((column) =>
      figureCell(node.cells.get(column.key), column, painted),
    ),
  );
}

function figureCell(
  cell: Cell | undefined,
  column: Column,
  painted: (() => void)[],
): HTMLElement {
  if (!cell) return h('td.number', '–');
  const mark = cell.isOutlier
    ? h('strong', cell.value > cell.median ? '▲ ' : '▼ ')
    : null;
  const ratio =
    cell.ratio === null || cell.equals < 2
      ? 'no equals'
      : timesMark(cell.ratio);
  const element = h(
    'td.number.figure-cell',
    mark,
    quantity(cell.value, column.unit),
    h('br'),
    h('small', ratio),
  );
  painted.push(() => {
    // Half is one end of the scale, double the other.
    const share =
      cell.ratio !== null && cell.ratio > 0
        ? 0.5 + Math.log2(cell.ratio) / 2
        : 0.5;
    const colour = colourAt(theme().diverging, share);
    element.style.backgroundColor = colour;
    element.style.color = inkOn(colour);
  });
  return element;
}

function method(fleet: Fleet): HTMLElement {
  const sizes = fleet.groups
    .map((group) => group.nodes)
    .filter((nodes) => nodes >= MIN_GROUP);
  const chance =
    sizes.length > 0
      ? ` Groups this small have outliers by chance, too: among equal nodes with normal figures, in about ${chancePercent(Math.min(...sizes))} of 100 figures.`
      : '';
  return section(
    'How it is judged',
    h(
      'p',
      `The newest complete record of each host and question. Peers have the same CPU model and shape. A node is an outlier if its modified z-score, from the median and the median absolute deviation of its group, is beyond ${Z_LIMIT} (Iglewicz and Hoaglin, 1993), in groups of ${MIN_GROUP} nodes or more.${chance}`,
    ),
  );
}
