// Two groups of machines against each other: what changed, largest first.

import '../fleet-report/fleet.css';

import { h, svg } from '../../dom';
import { count, quantity } from '../../format';
import type { AnyRecord } from '../../source';
import { sortableTable } from '../../sortable';
import { tableElement, numberColumns } from '../../table';
import type { Page, View } from '../../view';
import { section } from '../../words';
import { type Range, place, rangeOf } from '../fleet-report/shape';

import { stripAxis } from '../fleet-report/strips';
import { timesMark } from '../fleet/shape';
import { attributions } from '../profile/attribution';
import type { FigureChange, FleetDiff, Side } from './record';
import { readFleetDiff } from './record';

import { differs, largestFirst } from './shape';

/** Maximum number of drawn figures; the table has all. */
const MAX_DRAWN_FIGURES = 30;

/** Draws a `pinwise.fleet-diff/1`. */
export function fleetDiffView(record: AnyRecord, _page: Page): View {
  const diff = readFleetDiff(record);
  const figures = largestFirst(diff.figures);
  const element = h(
    'article',
    h('p.verdict', diff.sentence || 'This record has no conclusion.'),
    h(
      'p',
      `${sideWords(diff.a)} against ${sideWords(diff.b)}; ratios are the second over the first, with 95 % intervals over nodes.`,
    ),
    ...attributions(diff.attributions),
    figures.length > 0
      ? section(
          'Figures, largest change first',
          drawing(figures.slice(0, MAX_DRAWN_FIGURES)),
          table(figures),
        )
      : null,
    settings(diff),
    diff.onlyOne.length > 0
      ? section(
          'Figures that only one of them has',
          h('ul', ...diff.onlyOne.map((name) => h('li', name))),
        )
      : null,
  );
  return { element, dispose: () => undefined };
}

const sideWords = (side: Side): string =>
  `${[side.fleet, side.group].filter(Boolean).join(' / ') || 'one'} (${count(side.nodes, 'node')})`;

function drawing(figures: readonly FigureChange[]): HTMLElement {
  const range = rangeOf(
    figures.flatMap((figure) => [figure.ratio, figure.low, figure.high]),
  );
  return h(
    'div.strips',
    stripAxis(range, 'ratio'),
    ...figures.map((figure) => ratioRow(figure, range)),
  );
}

function ratioRow(figure: FigureChange, range: Range): HTMLElement {
  const ratio = figure.ratio !== null && figure.ratio > 0 ? figure.ratio : null;
  const at = (value: number): string => `${place(value, range).at}%`;
  const hasInterval =
    figure.low !== null && figure.high !== null && figure.low > 0;
  const drawn =
    ratio === null
      ? h('span.muted', 'No ratio is known.')
      : svg(
          'svg',
          {
            width: '100%',
            height: 22,
            role: 'img',
            'aria-label': `${figure.label}: ${ratioWords(figure)}`,
          },
          svg('line', { class: 'reach', x1: at(1), x2: at(1), y1: 0, y2: 22 }),
          hasInterval
            ? svg('line', {
                class: 'median',
                x1: at(figure.low!),
                x2: at(figure.high!),
                y1: 11,
                y2: 11,
              })
            : null,
          svg('circle', {
            class: differs(figure) === true ? 'changed' : 'undecided',
            cx: at(ratio),
            cy: 11,
            r: 4,
          }),
        );
  return h(
    'div.strip',
    h('span.strip-name', figure.label),
    drawn,
    h('span.number', ratio === null ? '–' : timesMark(ratio)),
  );
}

function ratioWords(figure: FigureChange): string {
  if (figure.ratio === null) return '–';
  const interval =
    figure.low === null || figure.high === null
      ? 'too few nodes for an interval'
      : `${timesMark(figure.low)} to ${timesMark(figure.high)}`;
  return `${timesMark(figure.ratio)}, ${interval}`;
}

const STATES = new Map([
  [true, 'differs'],
  [false, 'undecided'],
  [null, 'too few nodes'],
]);

const table = (figures: readonly FigureChange[]): HTMLElement =>
  sortableTable({
    caption: 'Medians of both, and their ratio',
    columns: [
      'Figure',
      ...numberColumns('First', 'Second', 'Ratio', 'Interval'),
      'In words',
    ],
    rows: figures.map((figure) => [
      { text: figure.label },
      { text: quantity(figure.a, figure.unit), sort: figure.a },
      { text: quantity(figure.b, figure.unit), sort: figure.b },
      {
        text: figure.ratio === null ? '–' : timesMark(figure.ratio),
        sort: figure.ratio,
      },
      {
        text:
          figure.low === null || figure.high === null
            ? '–'
            : `${timesMark(figure.low)} to ${timesMark(figure.high)}`,
        sort: figure.low,
      },
      { text: STATES.get(differs(figure)) ?? '' },
    ]),
  }).element;

function settings(diff: FleetDiff): HTMLElement {
  return section(
    'Settings that differ',
    diff.settings.length === 0
      ? h('p.muted', 'None that both report.')
      : tableElement({
          caption: 'What most nodes of each have',
          columns: ['Setting', 'First', 'Second'],
          rows: diff.settings.map((setting) => [
            setting.name,
            setting.a,
            setting.b,
          ]),
        }),
  );
}
