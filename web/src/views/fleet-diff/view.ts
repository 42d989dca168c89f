// Two groups of machines against each other: what changed, largest first.

import '../fleet-report/fleet.css';

import { h, svg } from '../../dom';
import { count, quantity } from '../../format';
import { items, texts } from '../../fields';
import { adviceLine } from '../../method';
import { finite, mapNumber, positive } from '../../numbers';
import type { FleetDiff, FleetFigureChange } from '../../records';
import type { AnyRecord } from '../../source';
import { sortableTable } from '../../sortable';
import { tableElement, numberColumns } from '../../table';
import type { Page, View } from '../../view';
import { section, shellWords } from '../../words';
import { type Range, place, ratioRange } from '../fleet-report/shape';
import { stripAxis } from '../fleet-report/strips';
import { timesMark } from '../fleet/shape';
import { attributionSections } from '../profile/attribution';
import { withLabels } from '../fleet-report/record';
import {
  betterMark,
  chooseDrawn,
  describeIntervals,
  describeSides,
  differs,
  largestFirst,
} from './shape';

type Figure = FleetFigureChange & { label: string };

/** Maximum number of drawn figures; the table has all. */
const MAX_DRAWN_FIGURES = 12;

/** Draws a `pinwise.fleet-diff/1`. */
export function fleetDiffView(record: AnyRecord, _page: Page): View {
  const diff = record as FleetDiff;
  const figures = largestFirst(withLabels(diff.figures));
  const onlyOne = texts(diff.only_one);
  const element = h(
    'article',
    h('p.verdict', diff.sentence || 'This record has no conclusion.'),
    adviceLine(nextStep(diff, figures)),
    h('p.muted', `${describeSides(diff)} Ratios are B over A.`),
    ...attributionSections(diff.attributions),
    figures.length > 0 &&
      section(
        'Figures, largest change first',
        h('p.muted', describeIntervals(figures)),
        ratioStrips(chooseDrawn(figures, MAX_DRAWN_FIGURES)),
        h(
          'details',
          h('summary', `All ${count(figures.length, 'figure')}`),
          figureTable(figures),
        ),
      ),
    settingsPart(diff),
    onlyOne.length > 0 &&
      section(
        'Figures that only one of them has',
        h('ul', ...onlyOne.map((name) => h('li', name))),
      ),
  );
  return { element, dispose: () => undefined };
}

/** Where to look for the cause, or how to find smaller changes. */
const nextStep = (diff: FleetDiff, figures: readonly Figure[]): string =>
  figures.some((figure) => differs(figure) === true)
    ? `See which nodes of B differ from their peers: pinwise fleet report ${shellWords([diff.b?.fleet || 'FLEET'])}.`
    : 'To narrow that, measure more nodes: pinwise fleet submit STUDY.toml.';

function ratioStrips(figures: readonly Figure[]): HTMLElement {
  const range = ratioRange(
    figures.flatMap(({ ratio, low, high }) => [ratio, low, high]),
  );
  return h(
    'div.strips',
    stripAxis(range, 'ratio'),
    ...figures.map((figure) => ratioRow(figure, range)),
  );
}

function ratioRow(figure: Figure, range: Range): HTMLElement {
  const { low, high } = figure;
  const ratio = positive(figure.ratio) ? figure.ratio : null;
  const at = (value: number): string => `${place(value, range).at}%`;
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
          positive(low) && finite(high)
            ? svg('line', {
                class: 'median',
                x1: at(low),
                x2: at(high),
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
    h('span.strip-name', `${figure.label}${betterMark(figure)}`),
    drawn,
    h('span.number', ratio === null ? '–' : timesMark(ratio)),
  );
}

const intervalWords = ({ low, high }: Figure): string | null =>
  finite(low) && finite(high)
    ? `${timesMark(low)} to ${timesMark(high)}`
    : null;

const ratioWords = (figure: Figure): string =>
  finite(figure.ratio)
    ? `${timesMark(figure.ratio)}, ${intervalWords(figure) ?? 'too few nodes for an interval'}`
    : '–';

const STATES = new Map([
  [true, 'differs'],
  [false, 'undecided'],
  [null, 'too few nodes'],
]);

const figureTable = (figures: readonly Figure[]): HTMLElement =>
  sortableTable({
    caption: 'Medians of both, and their ratio',
    columns: [
      'Figure',
      ...numberColumns('A', 'B', 'Ratio', 'Interval'),
      'Verdict',
    ],
    rows: figures.map((figure) => [
      { text: figure.label },
      { text: quantity(figure.a, figure.unit), sort: figure.a ?? null },
      { text: quantity(figure.b, figure.unit), sort: figure.b ?? null },
      {
        text: mapNumber(figure.ratio, timesMark) ?? '–',
        sort: figure.ratio ?? null,
      },
      { text: intervalWords(figure) ?? '–', sort: figure.low ?? null },
      { text: STATES.get(differs(figure)) ?? '' },
    ]),
  }).element;

function settingsPart(diff: FleetDiff): HTMLElement {
  const rows = items(diff.settings).map(({ name, a, b }) => [name, a, b]);
  return section(
    'Settings that differ',
    rows.length === 0
      ? h('p.muted', 'None that both report.')
      : tableElement({
          caption: 'What most nodes of each have',
          columns: ['Setting', 'A', 'B'],
          rows,
        }),
  );
}
