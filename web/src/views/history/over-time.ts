// A question's figure over time: a series for each host, the machine's changes as lines, each point
// a link to its record.

import { type ChartPlan, chart } from '../../chart';
import { selectElement } from '../../controls';
import { fill, h, visible } from '../../dom';
import { count, minute, quantity, withSpan } from '../../format';
import { seriesLook } from '../../plot';
import type { Entry, Listing } from '../../source';
import type { Page, Part } from '../../view';
import { numberColumns } from '../../table';
import { commitsPart } from './commits';
import type { Change, OverTime, Point, Stretch } from './shape';
import { overTime, signOf, verdictWords, within } from './shape';
import { recordLink, recordHref } from '../../words';

/** Records asked for at most: the newest of them. */
export const MAX_POINTS = 2000;
/** Maximum number of changes written beside their lines; the list has all. */
const MAX_LABELS = 6;
/** Points that have room for the signs of their verdicts. */
const MAX_VERDICT_SIGNS = 60;
/** Points whose intervals are bars; those of more are a band. */
const MAX_BARS = 40;

/** The plot of a subject's records with a select of its figures. */
export function overTimePart(
  subject: string,
  listing: Listing,
  page: Page,
  shown: { stretch: Stretch | null; keep(stretch: Stretch | null): void },
): Part {
  let wanted: string | null = null;
  let { stretch } = shown;
  const first = overTime(listing.records, null);
  const points = first.hosts.flatMap((host) => host.points).length;
  if (points === 0)
    return {
      element: h('p.muted', 'No record of this question has a figure.'),
      dispose: () => undefined,
    };
  const changes = h('ul.changes');
  const plan = (): ChartPlan => {
    const whole = overTime(listing.records, wanted);
    const data = within(whole, stretch);
    changes.replaceChildren(
      ...data.changes.map((change) =>
        h(
          'li',
          `${minute(new Date(change.time).toISOString())}, ${change.host}: ${change.words}`,
        ),
      ),
    );
    return planOf(
      subject,
      wanted ?? data.figures[0]!,
      data,
      listing.total,
      page,
      { stretch, zoom },
    );
  };
  const zoom = (next: Stretch | null): void => {
    stretch = next;
    zooms.show(next, spanOf(first));
    shown.keep(next);
    drawn.redraw(plan());
  };
  const zooms = zoomControls(zoom);
  const select = selectElement(
    first.figures.map((name) => [name, name]),
    (value) => {
      wanted = value;
      drawn.redraw(plan());
      commits.show(wanted);
    },
  );
  const drawn = chart(plan());
  const commits = commitsSlot(subject, page);
  commits.show(first.figures[0]!);
  zooms.show(stretch, spanOf(first));
  const heading =
    changes.childElementCount > 0
      ? h('p', 'The machine or the program changed:')
      : null;
  const element = h(
    'div',
    h(
      'div.controls',
      first.figures.length > 1 && h('label', 'Figure ', select),
      zooms.element,
    ),
    drawn.element,
    heading,
    changes,
    commits.element,
  );
  return {
    element,
    dispose: () => {
      drawn.dispose();
      commits.dispose();
    },
  };
}

/** The gates of a benchmark from commit to commit; empty for other questions. */
function commitsSlot(
  subject: string,
  { source }: Page,
): Part & { show(benchmark: string): void } {
  const element = h('div');
  let part: Part | null = null;
  let turn = 0;
  const clear = (): number => {
    part?.dispose();
    part = null;
    element.replaceChildren();
    return (turn += 1);
  };
  return {
    element,
    dispose: clear,
    show(benchmark) {
      const own = clear();
      if (!subject.startsWith('gate · ')) return;
      void source.gates(subject, benchmark).then(
        (history) => {
          if (own !== turn) return;
          part =
            history && history.steps.length > 1 ? commitsPart(history) : null;
          fill(
            element,
            part?.element ??
              h(
                'p.muted',
                `No two gates with intervals of ${benchmark} follow each other from commit to commit.`,
              ),
          );
        },
        (error: Error) => {
          if (own === turn) element.textContent = visible(error.message);
        },
      );
    },
  };
}

/** Hosts of a site are often changed together: then their lines are side by side. */
const SAME_DAY = 86_400_000;

const isRepeated = (change: Change, { changes }: OverTime): boolean =>
  changes
    .slice(0, changes.indexOf(change))
    .some(
      (before) =>
        before.words === change.words &&
        Math.abs(before.time - change.time) < SAME_DAY,
    );

/** From the first record to the last. */
function spanOf(data: OverTime): Stretch {
  const times = data.hosts.flatMap(({ points }) => points.map((p) => p.time));
  return [Math.min(...times), Math.max(...times)];
}

/** The effect of dragging over the plot, for users of a keyboard or a finger. */
function zoomControls(zoom: (stretch: Stretch | null) => void): {
  element: HTMLElement;
  show(stretch: Stretch | null, span: Stretch): void;
} {
  const day = (name: string): HTMLInputElement =>
    h('input', { type: 'date', aria: { label: `${name} (UTC)` } });
  const [from, to] = [day('From'), day('To')];
  const whole = h('button', { onclick: () => zoom(null) }, 'All times');
  const dates = (): void => {
    const start = Date.parse(`${from.value}T00:00:00Z`);
    const end = Date.parse(`${to.value}T23:59:59.999Z`);
    if (start < end) zoom([start, end]);
  };
  from.addEventListener('change', dates);
  to.addEventListener('change', dates);
  const isoDay = (time: number): string =>
    Number.isFinite(time) ? new Date(time).toISOString().slice(0, 10) : '';
  return {
    element: h(
      'span.zoom',
      h('label', 'From ', from),
      h('label', 'to ', to),
      whole,
    ),
    show(stretch, span) {
      const [start, end] = stretch ?? span;
      from.value = isoDay(start);
      to.value = isoDay(end);
      whole.hidden = stretch === null;
    },
  };
}

function summaryOf(data: OverTime, total: number): string {
  const points = data.hosts.flatMap((host) => host.points);
  if (points.length === 0) return 'No record in this time.';
  const values = points.map((point) => point.figure.value);
  const unit = points[0]!.figure.unit;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const cut =
    total > MAX_POINTS ? ` The newest ${MAX_POINTS} of ${total} records.` : '';
  return `${count(points.length, 'record')} of ${count(data.hosts.length, 'host')}, from ${quantity(low, unit)} to ${quantity(high, unit)}; ${count(data.changes.length, 'change')} of machine or program.${cut}`;
}

function planOf(
  subject: string,
  figure: string,
  data: OverTime,
  total: number,
  page: Page,
  { stretch, zoom }: { stretch: Stretch | null; zoom(stretch: Stretch): void },
): ChartPlan {
  const all = data.hosts.flatMap((host) => host.points);
  const unit = all[0]?.figure.unit ?? '';
  return {
    name: `${figure} over time`,
    summary: `${summaryOf(data, total)} Question: ${subject}.`,
    panel: {
      height: 240,
      x: {
        title: 'time (UTC); drag to zoom',
        type: 'utc',
        ...(stretch ? { ends: stretch } : {}),
      },
      y: { title: figure, label: (value) => quantity(value, unit) },
      rules: data.changes.map((change) => ({
        x: change.time,
        dash: '4 3',
        ...(data.changes.length <= MAX_LABELS && !isRepeated(change, data)
          ? { label: change.words.slice(0, 40) }
          : {}),
      })),
      series: data.hosts.map((host, at) => ({
        name: host.host,
        ...seriesLook(at),
        line: 'straight' as const,
        width: 1,
        interval: 'y' as const,
        thickness: 1.5,
        isBand: host.points.length > MAX_BARS,
        size: host.points.length > MAX_BARS ? 2 : 4.5,
        points: host.points.map((point) => ({
          x: point.time,
          y: point.figure.value,
          low: point.figure.low,
          high: point.figure.high,
          sign: all.length <= MAX_VERDICT_SIGNS ? signOf(point.entry) : '',
          tooltip: pointWords(point),
          pick: () => page.go(recordHref(point.entry.id)),
        })),
      })),
    },
    select: (from, to) => zoom([from, to]),
    table: {
      caption: 'Records, newest first',
      columns: [
        'Time',
        'Host',
        { name: figure, isNumber: true },
        ...numberColumns('From', 'To'),
        'Verdict',
      ],
      rows: [...all]
        .sort((a, b) => b.time - a.time)
        .map((point) => [
          link(point.entry),
          point.entry.host,
          quantity(point.figure.value, unit),
          quantity(point.figure.low, unit),
          quantity(point.figure.high, unit),
          verdictWords(point.entry),
        ]),
    },
  };
}

const link = (entry: Entry): HTMLElement =>
  recordLink(entry.id, minute(entry.time));

function pointWords({ entry, figure }: Point): string {
  const { value, low, high, unit } = figure;
  const said = withSpan(value, low, high, (v) => quantity(v, unit));
  return `${entry.host}, ${minute(entry.time)}\n${said}\n${verdictWords(entry)}`.trim();
}
