// Repeated questions: each with its figure over time, small.

import './history.css';

import { fill, h, svg } from '../../dom';
import { change, count, minute, quantity } from '../../format';
import { commandList } from '../../headline';
import { filterMap } from '../../lists';
import {
  changeText,
  describeHistory,
  findNewVerdict,
  describeTrend,
  diffCommand,
  figureText,
  formatAddress,
  findQuestions,
  historyPoints,
  spreadTimes,
  type NewVerdict,
  type Point,
  type Question,
} from './shape';
import { formatVerdict, verdictWords } from './verdict';
import type { Entry, GateHistory, Source } from '../../source';
import { type TableCell, numberColumns, tableElement } from '../../table';
import { recordHref } from '../../words';

const WIDTH = 180;
const HEIGHT = 32;
const MARGIN = 4;
/** Rows shown at first. */
const ROWS_AT_FIRST = 8;

/** Is the table open? On a phone it would leave no room for records. */
let isUnfolded = matchMedia('(min-width: 40rem)').matches;

/** The questions of these records as a table; null if none was asked twice. */
export function questionTable(
  entries: readonly Entry[],
  source: Source,
): HTMLElement | null {
  const all = findQuestions(entries);
  if (all.length === 0) return null;
  const changed = filterMap(all, ({ points }) => findNewVerdict(points));
  const [newest] = changed.sort((a, b) => b.after.time - a.after.time);
  const table = (shown: readonly Question[]): HTMLElement =>
    tableElement({
      caption: shown.some(({ changes }) => changes.length > 0)
        ? 'A vertical line marks a change of the machine or the program.'
        : 'Most records first',
      columns: [
        'Question',
        'Verdict',
        'Over time',
        ...numberColumns('Newest', 'Before', 'Records'),
      ],
      rows: shown.map((question) => questionRow(question, source, newest)),
    });
  const first = table(all.slice(0, ROWS_AT_FIRST));
  const button = h(
    'button',
    {
      onclick: () => {
        first.replaceWith(table(all));
        button.remove();
      },
    },
    `Show ${all.length - ROWS_AT_FIRST} more`,
  );
  const fold = h(
    'details',
    { open: isUnfolded, ontoggle: () => (isUnfolded = fold.open) },
    h('summary', `${count(all.length, 'question')} measured more than once`),
    first,
    all.length > ROWS_AT_FIRST && button,
  );
  return h(
    'section.questions',
    { aria: { label: 'Questions over time' } },
    newest &&
      h('p.verdict', `${newest.after.entry.title}: ${newest.sentence}.`),
    newest && commandList([diffCommand(newest.before, newest.after)]),
    fold,
  );
}

const askedHistories = new Map<string, Promise<GateHistory | null>>();

/** The verdict that is the headline is not repeated. */
function questionRow(
  question: Question,
  source: Source,
  headline: NewVerdict | undefined,
): TableCell[] {
  const { subject, host, figure, points } = question;
  const [before, newest] = points.slice(-2) as [
    (typeof points)[0],
    (typeof points)[0],
  ];
  const { unit, value } = newest.figure;
  const own = formatAddress({ subject, host: newest.entry.host });
  // Figures of a gate are changes themselves, of which a ratio means nothing.
  const isGate = subject.startsWith('gate · ');
  const changed = findNewVerdict(points);
  const hasRatio = unit !== '%' && before.figure.value !== 0;
  const [verdict, line, last, former] = [
    h(
      'span',
      isGate || (changed && changed.after === headline?.after)
        ? verdictWords(newest.entry)
        : (changed?.sentence ??
            `${figure} on ${host}: ${describeTrend(points, true)}`),
    ),
    // Two points show no course.
    h('span', points.length > 2 ? sparkline(question) : null),
    h(
      'a',
      {
        href: recordHref(newest.entry.id),
        title: `${minute(newest.entry.time)} ${formatVerdict(newest.entry)}`,
      },
      isGate
        ? `${figure} ${changeText(newest.figure)}`
        : figureText(value, unit),
    ),
    h(
      'span',
      (isGate
        ? changeText(before.figure)
        : figureText(before.figure.value, unit)) +
        (hasRatio ? ` (${change(value / before.figure.value)})` : ''),
    ),
  ];
  // Where a page of its own chains the gates, the row says what that says.
  const showHistory = (history: GateHistory | null): void => {
    const chain = history ? historyPoints(history) : [];
    const [a, b] = chain.slice(-2);
    if (!history || !a || !b) return;
    fill(verdict, describeHistory(history));
    fill(line, sparkline({ points: chain, changes: [] }));
    fill(last, `${figure} ${changeText(b.figure)}`);
    last.href = own;
    last.title = '';
    fill(former, changeText(a.figure));
  };
  if (isGate) {
    // Redrawn with every letter of a filter, the rows ask once.
    const key = [subject, figure, newest.entry.id, points.length].join('\n');
    const asked = askedHistories.get(key) ?? source.gates(subject, figure);
    askedHistories.set(key, asked);
    void asked.then(showHistory, () => askedHistories.delete(key));
  }
  return [
    h('a', { href: own }, subject),
    verdict,
    isGate || points.length > 2 ? line : null,
    last,
    former,
    points.length,
  ];
}

/** The figure's values as a line with their intervals, the newest as a dot. */
function sparkline({
  points,
  changes,
}: {
  points: readonly Pick<Point, 'time' | 'figure'>[];
  changes: Question['changes'];
}): SVGElement {
  const times = spreadTimes(points.map(({ time }) => time));
  const all = points.map(({ figure }, at) => ({
    time: times[at]!,
    value: figure.value,
    low: figure.low ?? figure.value,
    high: figure.high ?? figure.value,
  }));
  const makeScale = (values: number[], from: number, to: number) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    return (value: number): number =>
      high > low
        ? from + ((value - low) / (high - low)) * (to - from)
        : (from + to) / 2;
  };
  const x = makeScale(
    all.map((p) => p.time),
    MARGIN,
    WIDTH - MARGIN,
  );
  const y = makeScale(
    all.flatMap((p) => [p.low, p.high]),
    HEIGHT - MARGIN - 4,
    MARGIN,
  );
  const at = (p: (typeof all)[0], value: number): string =>
    `${x(p.time).toFixed(1)},${y(value).toFixed(1)}`;
  const last = all.at(-1)!;
  const unit = points[0]!.figure.unit;
  return svg(
    'svg',
    {
      width: WIDTH,
      height: HEIGHT,
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      class: 'sparkline',
      role: 'img',
      'aria-label': `${points.length} values from ${quantity(Math.min(...all.map((p) => p.value)), unit)} to ${quantity(Math.max(...all.map((p) => p.value)), unit)}; ${count(changes.length, 'change')} of machine or program`,
    },
    svg('polygon', {
      points: [
        ...all.map((p) => at(p, p.high)),
        ...all.map((p) => at(p, p.low)).reverse(),
      ].join(' '),
      class: 'interval',
    }),
    ...changes.map((one) =>
      svg('line', {
        x1: x(one.time),
        x2: x(one.time),
        y1: HEIGHT - 6,
        y2: HEIGHT,
        class: 'changed',
      }),
    ),
    svg('polyline', {
      points: all.map((p) => at(p, p.value)).join(' '),
      class: 'values',
    }),
    svg('circle', { cx: x(last.time), cy: y(last.value), r: 2.5 }),
  );
}
