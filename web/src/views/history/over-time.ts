// A question's figure over time: a series for each host, the machine's changes as lines, each point
// a link to its record.

import { type ChartPlan, chart } from '../../chart';
import { selectElement } from '../../controls';
import { fill, h, visible } from '../../dom';
import { type NamedCommand, commandList } from '../../headline';
import { filterMap } from '../../lists';
import { count, formatMoments, minute, quantity, withSpan } from '../../format';
import { items } from '../../fields';
import { seriesLook } from '../../plot';
import { wholeTicks } from '../../scales';
import type { Comparison, GateRecord, MetricRecord } from '../../records';
import type { Listing } from '../../source';
import type { Page, Part } from '../../view';
import { numberColumns } from '../../table';
import { commitsPart } from './commits';
import type { Change, OverTime, Point, TimeRange } from './shape';
import {
  collectOverTime,
  describeTrend,
  diffCommand,
  figureText,
  findNewVerdict,
  hostOf,
  isExact,
  selectTimeRange,
  spreadTimes,
} from './shape';
import { signOf, formatVerdict } from './verdict';
import { recordLink, recordHref } from '../../words';

/** Records asked for at most: the newest of them. */
export const MAX_POINTS = 2000;
/** Hosts in the sentence above a chart. */
const MAX_TRENDS = 3;
/** With more changes than this, their lines have no labels; the list has all. */
const MAX_LABELS = 6;
/** With more points than this, there is no room for the signs of their verdicts. */
const MAX_VERDICT_SIGNS = 60;
/** With more points of a host than this, their intervals are a band instead of bars. */
const MAX_BARS = 40;

/** Records with a metric; all their figures are of it. */
const HAS_METRIC = /^pinwise\.(comparison|search)\//;

/** "wall-clock time, lower is better". */
const metricTitle = ({ label, name, better }: MetricRecord): string =>
  `${label || name}, ${better} is better`;

/** The plot of a subject's records with a select of its figures. */
export function overTimePart(
  subject: string,
  listing: Listing,
  page: Page,
  shown: { range: TimeRange | null; keep(range: TimeRange | null): void },
): Part {
  let wanted: string | null = null;
  let { range } = shown;
  const first = collectOverTime(listing.records, null);
  const points = first.hosts.flatMap((host) => host.points).length;
  if (points === 0)
    return {
      element: h('p.muted', 'No record of this question has a figure.'),
      dispose: () => undefined,
    };
  const isGate = subject.startsWith('gate · ');
  const newest = [...listing.records].sort((a, b) =>
    b.time.localeCompare(a.time),
  )[0]!;
  let gate: GateRecord | null = null;
  let metric: MetricRecord | null = null;
  let isDisposed = false;
  const verdict = h('p.verdict');
  const next = h('div');
  const changes = h('ul.changes');
  const plan = (): ChartPlan => {
    const whole = collectOverTime(listing.records, wanted);
    const data = selectTimeRange(whole, range);
    changes.replaceChildren(
      ...data.changes.map((change) =>
        h(
          'li',
          `${minute(new Date(change.time).toISOString())}, ${change.host}: ${change.words}`,
        ),
      ),
    );
    const figure = wanted ?? data.figures[0]!;
    const benchmark = items(gate?.benchmarks).find((b) => b.name === figure);
    fill(
      verdict,
      benchmark
        ? `${figure}: ${benchmark.change || '–'}, ${benchmark.standing} in the newest gate.`
        : !isGate && describeTrends(figure, whole),
    );
    fill(next, !isGate && commandList(nextCommand(whole)));
    const plan = overTimePlan(figure, data, listing.total, page, {
      range,
      zoom,
    });
    if (!isGate) {
      if (metric?.better)
        plan.panel!.y = { ...plan.panel!.y, title: metricTitle(metric) };
      return plan;
    }
    const isRate = benchmark?.metric?.better === 'higher';
    const effect = benchmark?.min_effect ?? 0;
    const limit = isRate ? -effect / (1 + effect) : effect;
    const { panel } = plan;
    panel!.rules = [
      { y: 0 },
      ...(effect ? [{ y: limit * 100, label: 'limit', dash: '4 3' }] : []),
      ...(panel!.rules ?? []),
    ];
    const title = `${benchmark && !isRate ? 'slowdown' : 'change'} of ${figure} against base`;
    panel!.y = { ...panel!.y, hasZero: true, title };
    return plan;
  };
  const zoom = (next: TimeRange | null): void => {
    range = next;
    zoomRow.show(next, wholeRange(first));
    shown.keep(next);
    drawn.redraw(plan());
  };
  const zoomRow = zoomControls(zoom);
  const select = selectElement(
    first.figures.map((name) => [name, name]),
    (value) => {
      wanted = value;
      drawn.redraw(plan());
      commits.show(wanted);
    },
  );
  const drawn = chart(plan());
  if (isGate || HAS_METRIC.test(newest.schema))
    void page.source.load(newest.id).then(
      (record) => {
        if (isGate) gate = record as GateRecord;
        else metric = (record as Comparison).metric ?? null;
        if (!isDisposed) drawn.redraw(plan());
      },
      () => undefined,
    );
  // Where commits follow each other, their history is the answer, and gates are its steps.
  const gates = h(
    isGate ? 'details' : 'div',
    isGate && h('summary', 'Each gate over time'),
    verdict,
    next,
    drawn.element,
    zoomRow.element,
  );
  const commits = commitsSlot(subject, page, (isFound) => {
    gates.toggleAttribute('open', !isFound);
    gates[isFound ? 'before' : 'after'](commits.element);
  });
  commits.show(first.figures[0]!);
  zoomRow.show(range, wholeRange(first));
  const heading =
    changes.childElementCount > 0
      ? h('p', 'The machine or the program changed:')
      : null;
  const element = h(
    'div',
    commits.element,
    gates,
    first.figures.length > 1 &&
      h('div.controls', h('label', 'Figure ', select)),
    heading,
    changes,
  );
  return {
    element,
    dispose: () => {
      isDisposed = true;
      drawn.dispose();
      commits.dispose();
    },
  };
}

/** How a figure changed on each host, those where it did first. */
const describeTrends = (figure: string, { hosts }: OverTime): string =>
  `${hosts
    .map(({ host, points }) => {
      const verdict = findNewVerdict(points)?.sentence;
      return verdict
        ? `${hosts.length > 1 ? `${host}: ` : ''}${verdict}`
        : `${figure} on ${host}: ${describeTrend(points)}`;
    })
    .sort((a, b) => +/changed|beats/.test(b) - +/changed|beats/.test(a))
    .slice(0, MAX_TRENDS)
    .join('; ')}${hosts.length > MAX_TRENDS ? ' …' : '.'}`;

/** Compares the records around the last change of verdict, else the last two of a host. */
function nextCommand({ hosts }: OverTime): NamedCommand[] {
  const found = filterMap(hosts, ({ points }) => findNewVerdict(points));
  const last = hosts.find(({ points }) => points.length > 1)?.points.slice(-2);
  const [a, b] = found[0] ? [found[0].before, found[0].after] : (last ?? []);
  return a && b ? [diffCommand(a, b)] : [];
}

/** The gates of a benchmark from commit to commit; empty for other questions. */
function commitsSlot(
  subject: string,
  { source }: Page,
  found: (isFound: boolean) => void,
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
          found(part !== null);
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
          if (own !== turn) return;
          element.textContent = visible(error.message);
          found(false);
        },
      );
    },
  };
}

/** A day. Hosts of a site are often changed together: of the same change within one, only the first
 * has a label. */
const DAY_MS = 86_400_000;

const isRepeated = (change: Change, { changes }: OverTime): boolean =>
  changes
    .slice(0, changes.indexOf(change))
    .some(
      (before) =>
        before.words === change.words &&
        Math.abs(before.time - change.time) < DAY_MS,
    );

/** From the first record to the last. */
function wholeRange(data: OverTime): TimeRange {
  const times = data.hosts.flatMap(({ points }) => points.map((p) => p.time));
  return [Math.min(...times), Math.max(...times)];
}

/** Fields that zoom like dragging over the plot, for keyboards and touch screens. */
function zoomControls(zoom: (range: TimeRange | null) => void): {
  element: HTMLElement;
  show(range: TimeRange | null, span: TimeRange): void;
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
  const element = h(
    'span.zoom',
    h('label', 'From ', from),
    h('label', 'to ', to),
    whole,
  );
  return {
    element,
    show(range, span) {
      const [start, end] = range ?? span;
      from.value = isoDay(start);
      to.value = isoDay(end);
      whole.hidden = range === null;
      // The fields choose days.
      element.hidden = range === null && span[1] - span[0] < DAY_MS;
    },
  };
}

function summarise(data: OverTime, total: number): string {
  const points = data.hosts.flatMap((host) => host.points);
  if (points.length === 0) return 'No record in this time.';
  const values = points.map((point) => point.figure.value);
  const unit = points[0]!.figure.unit;
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const cut =
    total > points.length
      ? ` of ${total > MAX_POINTS ? `the newest ${MAX_POINTS} of ` : ''}${total}`
      : '';
  const signs = filterMap(Object.entries(SIGN_NAMES), ([sign, name]) =>
    points.some(({ entry }) => signOf(entry) === sign)
      ? `${sign} ${name}`
      : null,
  );
  return [
    `${points.length}${cut} ${points.length === 1 ? 'record' : 'records'}, between ${figureText(low, unit)} and ${figureText(high, unit)}`,
    data.hosts.length > 1 && count(data.hosts.length, 'host'),
    data.changes.length > 0 &&
      `${count(data.changes.length, 'change')} of machine or program`,
    points.length <= MAX_VERDICT_SIGNS && signs.join(', '),
  ]
    .filter(Boolean)
    .join('; ')
    .concat('.');
}

/** Signs of verdicts that need words. */
const SIGN_NAMES = { '★': 'best', '✓': 'leave it alone', '?': 'undecided' };

/** Records within this time have an axis of their own: in order. */
const BURST_MS = 3e5;

function overTimePlan(
  figure: string,
  data: OverTime,
  total: number,
  page: Page,
  { range, zoom }: { range: TimeRange | null; zoom(range: TimeRange): void },
): ChartPlan {
  const all = data.hosts.flatMap((host) => host.points);
  const unit = all[0]?.figure.unit ?? '';
  const isCount = all.every(({ figure: one }) => isExact(one));
  const [start, end] = wholeRange(data);
  const inOrder = [...all].sort((a, b) => a.time - b.time);
  const isBurst = end - start < BURST_MS && data.hosts.length === 1;
  const moment = formatMoments(all.map(({ entry }) => entry.time));
  const placeOf = new Map(
    data.hosts.flatMap(({ points }) => {
      if (isBurst) return inOrder.map(({ entry }, at) => [entry.id, at + 1]);
      const moved = spreadTimes(points.map(({ time }) => time));
      return points.map(({ entry }, at) => [entry.id, moved[at]!] as const);
    }),
  );
  return {
    name: `${figure} over time`,
    summary: summarise(data, total),
    panel: {
      height: 240,
      x: isBurst
        ? {
            title: `records of ${minute(inOrder[0]?.entry.time ?? '').slice(0, 10)} (UTC), oldest first`,
            ends: [0.5, all.length + 0.5],
            ticks: wholeTicks,
            label: (at) => inOrder[at - 1]?.entry.time.slice(11, 19) ?? '',
          }
        : {
            title: 'time (UTC); drag to zoom',
            type: 'utc',
            ...(range ? { ends: range } : {}),
          },
      y: {
        title: figure,
        ...(isCount ? { ticks: wholeTicks } : {}),
        hasZero: unit === '%',
        label: (v, places) => figureText(v, unit, places),
      },
      rules: [
        ...(unit === '%' && figure.includes(' against ')
          ? [{ y: 0, label: figure.split(' against ')[1]! }]
          : []),
        ...data.changes.map((change) => ({
          x:
            placeOf.get(
              all.find(
                ({ time, entry }) =>
                  time === change.time && hostOf(entry) === change.host,
              )?.entry.id ?? '',
            ) ?? change.time,
          dash: '4 3',
          ...(data.changes.length <= MAX_LABELS && !isRepeated(change, data)
            ? { label: change.words.slice(0, 40) }
            : {}),
        })),
      ],
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
          x: placeOf.get(point.entry.id)!,
          y: point.figure.value,
          low: point.figure.low,
          high: point.figure.high,
          sign: all.length <= MAX_VERDICT_SIGNS ? signOf(point.entry) : '',
          tooltip: describePoint(point, moment),
          pick: () => page.go(recordHref(point.entry.id)),
        })),
      })),
    },
    ...(isBurst
      ? {}
      : { select: (from: number, to: number) => zoom([from, to]) }),
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
        .reverse()
        .sort((a, b) => b.time - a.time)
        .map((point) => [
          recordLink(point.entry.id, moment(point.entry.time)),
          point.entry.host,
          figureText(point.figure.value, unit),
          quantity(point.figure.low, unit),
          quantity(point.figure.high, unit),
          formatVerdict(point.entry),
        ]),
    },
  };
}

function describePoint(
  { entry, figure }: Point,
  moment: (time: string) => string,
): string {
  const { value, low, high, unit } = figure;
  const said = withSpan(value, low, high, (v) => figureText(v, unit));
  return `${entry.host}, ${moment(entry.time)}\n${said}\n${formatVerdict(entry)}`.trim();
}
