// A question's figure over time: a series for each host, the machine's changes
// as lines, each point a way to its record.

import type { ChartPlan } from '../../chart';
import { chart } from '../../chart';
import { h, visible } from '../../dom';
import { count, minute, quantity } from '../../format';
import type { Panel } from '../../plot';
import { look } from '../../plot';
import type { Entry, Listing } from '../../source';
import type { Page, Part } from '../../view';
import type { OverTime, Point } from './shape';
import { overTime } from './shape';

/** Records asked for at most: the newest of them. */
export const MOST_POINTS = 2000;
/** Changes written beside their lines; all stand in the list. */
const MOST_LABELS = 6;

/** The plot of a subject's records with a select of its figures. */
export function overTimePart(
  subject: string,
  listing: Listing,
  page: Page,
): Part {
  let wanted: string | null = null;
  const first = overTime(listing.records, null);
  const points = first.hosts.flatMap((host) => host.points).length;
  if (points === 0)
    return {
      element: h(
        'p',
        { class: 'muted' },
        'No record of this question has a figure.',
      ),
      dispose: () => undefined,
    };
  const changes = h('ul', { class: 'changes' });
  const plan = (): ChartPlan => {
    const data = overTime(listing.records, wanted);
    changes.replaceChildren(
      ...data.changes.map((change) =>
        h(
          'li',
          {},
          visible(
            `${minute(new Date(change.time).toISOString())}, ${change.host}: ${change.words}`,
          ),
        ),
      ),
    );
    return planOf(
      subject,
      wanted ?? data.figures[0]!,
      data,
      listing.total,
      page,
    );
  };
  const select = h(
    'select',
    {},
    ...first.figures.map((name) => h('option', { value: name }, visible(name))),
  );
  const drawn = chart(plan());
  select.addEventListener('change', () => {
    wanted = select.value;
    drawn.redraw(plan());
  });
  const heading =
    changes.childElementCount > 0 ? h('p', {}, 'The machine changed:') : null;
  const element = h(
    'div',
    {},
    first.figures.length > 1
      ? h('div', { class: 'controls' }, h('label', {}, 'Figure ', select))
      : null,
    drawn.element,
    heading,
    changes,
  );
  return { element, dispose: drawn.dispose };
}

function summaryOf(data: OverTime, total: number): string {
  const points = data.hosts.flatMap((host) => host.points);
  const values = points.map((point) => point.figure.value);
  const unit = points[0]!.figure.unit;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const cut =
    total > MOST_POINTS
      ? ` The newest ${MOST_POINTS} of ${total} records.`
      : '';
  return `${count(points.length, 'record')} of ${count(data.hosts.length, 'host')}, from ${quantity(low, unit)} to ${quantity(high, unit)}; ${count(data.changes.length, 'change')} of the machine.${cut}`;
}

function planOf(
  subject: string,
  figure: string,
  data: OverTime,
  total: number,
  page: Page,
): ChartPlan {
  const all = data.hosts.flatMap((host) => host.points);
  const unit = all[0]!.figure.unit;
  return {
    name: visible(`${figure} over time`),
    summary: visible(`${summaryOf(data, total)} Question: ${subject}.`),
    panels: (): Panel[] => [
      {
        height: 240,
        x: { title: 'time (UTC)', type: 'utc' },
        y: { title: figure, label: (value) => quantity(value, unit) },
        rules: data.changes.map((change) => ({
          x: change.time,
          dash: '4 3',
          ...(data.changes.length <= MOST_LABELS
            ? { label: change.words.slice(0, 40) }
            : {}),
        })),
        series: data.hosts.map((host, at) => ({
          name: host.host,
          ...look(at),
          line: 'straight' as const,
          width: 1,
          interval: 'y' as const,
          thickness: 1.5,
          points: host.points.map((point) => ({
            x: point.time,
            y: point.figure.value,
            low: point.figure.low,
            high: point.figure.high,
            tooltip: pointWords(point),
            pick: () =>
              page.go(`#/record/${encodeURIComponent(point.entry.id)}`),
          })),
        })),
      },
    ],
    table: {
      caption: 'Records, newest first',
      columns: [
        { name: 'Time' },
        { name: 'Host' },
        { name: figure, isNumber: true },
        { name: 'From', isNumber: true },
        { name: 'To', isNumber: true },
      ],
      rows: [...all]
        .sort((a, b) => b.time - a.time)
        .map((point) => [
          link(point.entry),
          point.entry.host,
          quantity(point.figure.value, unit),
          quantity(point.figure.low, unit),
          quantity(point.figure.high, unit),
        ]),
    },
  };
}

const link = (entry: Entry): HTMLElement =>
  h(
    'a',
    { href: `#/record/${encodeURIComponent(entry.id)}` },
    minute(entry.time),
  );

const pointWords = (point: Point): string =>
  visible(
    `${point.entry.host}, ${minute(point.entry.time)}\n${quantity(point.figure.value, point.figure.unit)}${point.figure.low === null || point.figure.high === null ? '' : ` (${quantity(point.figure.low, point.figure.unit)} to ${quantity(point.figure.high, point.figure.unit)})`}`,
  );
