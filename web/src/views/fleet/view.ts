// The fleet: all fleets, and hosts by figures, coloured by their ratio to the median of their
// peers.

import { h, visible } from '../../dom';
import { count, quantity } from '../../format';
import type { Entry, Source } from '../../source';
import type { Page, Part } from '../../view';
import { scrollBox } from '../../table';
import { commandLine, recordHref, section } from '../../words';
import type { Cell, Column, Fleet, Node } from './shape';
import { toFleet, timesMark, verdictText } from './shape';
import { listFleets, fleetsPart } from './fleets';

/** Maximum number of newest records of each kind; hosts without one among them are requested one by
 * one. */
const MAX_RECORDS_PER_KIND = 1000;
const MAX_RECORDS_PER_HOST = 50;
const MAX_HOSTS = 200;
/** Number of columns that fit a page and paper. */
const MAX_COLUMNS = 9;
const ROWS_AT_A_TIME = 100;

/** The view of all fleets, and of all hosts' newest records. */
export async function fleetView(page: Page): Promise<Part> {
  document.title = 'Fleet · pinwise';
  const [fleets, looked] = await Promise.all([
    listFleets(page.source),
    loadNewest(page.source),
  ]);
  const fleet = toFleet(looked.entries);
  const part = fleetsPart(fleets, page.source);
  const element = h(
    'div',
    h('h1', 'Fleet'),
    part,
    ...hostParts(fleet, looked, part !== null),
  );
  return { element, dispose: () => undefined };
}

/** Hosts beside their peers, in fleets or not. */
function hostParts(
  fleet: Fleet,
  looked: LoadedEntries,
  hasFleets: boolean,
): (HTMLElement | null)[] {
  if (fleet.nodes.length < 2 || fleet.columns.length === 0)
    return hasFleets ? [] : [tooFewPart(fleet)];
  // Hosts without peers say nothing beside a fleet.
  if (hasFleets && fleet.groups.length === fleet.nodes.length) return [];
  const verdict = visible(verdictText(fleet, hasFleets));
  return [
    hasFleets
      ? h('section', h('h2', 'Hosts of other records'), h('p', verdict))
      : h('p.verdict', verdict),
    looked.left > 0
      ? h(
          'p.muted',
          `Of each kind of record the newest ${MAX_RECORDS_PER_KIND.toLocaleString('en-US')} are looked through; ${count(looked.left, 'older one is', 'older ones are')} not.`,
        )
      : null,
    fleet.groups.length < fleet.nodes.length
      ? section(
          'Hosts by figures',
          h(
            'p.muted',
            'The newest record of each host, and its ratio to the median of hosts with the same CPU model and topology, in colour from half to double; pinwise fleet report says what is beyond chance.',
          ),
          ...figureTables(fleet),
        )
      : null,
    section(
      'Groups of similar hosts',
      h(
        'ul',
        ...fleet.groups.map((group) =>
          h('li', `${group.name}: ${count(group.nodes, 'host')}`),
        ),
      ),
    ),
  ];
}

interface LoadedEntries {
  entries: Entry[];
  /** Number of records that were not loaded. */
  left: number;
}

/** Schemas of fleets, which are not fetched: a fleet may have ten thousand nodes. */
const FLEET_SCHEMA = /^pinwise\.fleet/;

async function loadNewest(source: Source): Promise<LoadedEntries> {
  const { schemas, hosts } = await source.list({ limit: 1 });
  const kinds = schemas.filter((schema) => !FLEET_SCHEMA.test(schema));
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

const tooFewPart = (fleet: Fleet): HTMLElement =>
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

/** A question's figures in tables as wide as a page; most nodes first. */
function figureTables(fleet: Fleet): HTMLElement[] {
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
): HTMLElement {
  const body = h('tbody');
  const more = h('button.more', { onclick: () => draw() });
  const draw = (): void => {
    const at = body.childElementCount;
    body.append(
      ...nodes
        .slice(at, at + ROWS_AT_A_TIME)
        .map((node) =>
          h(
            'tr',
            h(
              'th',
              { scope: 'row', title: node.group },
              node.host || 'unknown',
            ),
            ...columns.map((column) =>
              figureCell(node.cells.get(column.key), column),
            ),
          ),
        ),
    );
    const left = nodes.length - body.childElementCount;
    more.hidden = left <= 0;
    more.textContent = `Show ${Math.min(ROWS_AT_A_TIME, left)} more of ${left.toLocaleString('en-US')} nodes`;
  };
  draw();
  const heads = columns.map(({ name, unit }) =>
    h('th', { scope: 'col' }, unit ? `${name}, ${unit}` : name),
  );
  return h(
    'div.fleet',
    scrollBox(caption, [h('th', { scope: 'col' }, 'Host'), ...heads], body),
    more,
  );
}

function figureCell(cell: Cell | undefined, column: Column): HTMLElement {
  if (!cell) return h('td.number', '–');
  const { ratio, record, value } = cell;
  const element = h(
    'td.number.figure-cell',
    h('a', { href: recordHref(record) }, quantity(value, column.unit)),
    h('br'),
    h('small', ratio === null ? 'no peers' : timesMark(ratio)),
  );
  // Half is one end of the scale, double the other.
  const off = ratio !== null && ratio > 0 ? Math.log2(ratio) : 0;
  const share = 45 * Math.min(1, Math.abs(off));
  element.style.backgroundColor = `color-mix(in srgb, var(--${off < 0 ? 'better' : 'worse'}) ${share}%, var(--background))`;
  return element;
}
