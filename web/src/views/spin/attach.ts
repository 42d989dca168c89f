// What spins: its share of CPU time, the places with their code, and the settings that change them.

import './style.css';

import { type ChartPlan, chart } from '../../chart';
import { h } from '../../dom';
import { count, percent, quantity, seconds } from '../../format';
import { adviceLine, findingsPart } from '../../method';
import { COLOURS, seriesColour } from '../../plot';
import type {
  Maybe,
  SpinAttachRecord,
  SpinPlace,
  SpinShares,
} from '../../records';
import { sortableTable, figureCell } from '../../sortable';
import type { AnyRecord } from '../../source';
import { type Page, type Part, type View, stack } from '../../view';
import { facts, hostFacts, section, shellWords } from '../../words';
import { numberColumns } from '../../table';
import { filterMap } from '../../lists';
import { mapNumber } from '../../numbers';

/** Places with a smaller share of the CPU time are not shown. */
const MIN_SHARE = 0.005;

/** Kinds of time, and what their loops do. */
const TIME_KINDS: readonly (readonly [
  field: keyof SpinShares,
  name: string,
  meaning: string,
])[] = [
  ['polling_s', 'polling', 'looks, and hints between looks'],
  ['blind_delay_s', 'blind delay', 'hints without looking'],
  ['bare_load_s', 'polling without a hint', 'looks without a hint'],
  ['yielding_s', 'yielding', 'sched_yield between looks'],
  ['asking_s', 'asking', 'system calls that get nothing'],
  ['work_s', 'work', 'everything else'],
];

/** The name of a place's kind, as in the chart. */
const nameKind = (kind: Maybe<string>): string =>
  TIME_KINDS.find(([field]) => field === `${kind}_s`)?.[1] ?? kind ?? 'waiting';

/** Draws a `pinwise.spin-attach/1`. */
export function spinAttachView(record: AnyRecord, _page: Page): View {
  const attach = record as SpinAttachRecord;
  const { source } = attach;
  const shares = sharePlan(attach);
  const plot: Part | null = shares ? chart(shares) : null;
  const places = (attach.places ?? []).filter(
    (p) => (p.share ?? 0) >= MIN_SHARE,
  );
  const findings = attach.findings ?? [];
  return stack('article', '', [
    h('p.verdict', attach.answer?.sentence ?? ''),
    adviceLine(attach.answer?.advice),
    plot,
    section(
      'Where it spins',
      ...(places.length > 0
        ? places.map(placePart)
        : [
            h(
              'p.muted',
              'No place spins for half a per cent of the CPU time or more.',
            ),
          ]),
    ),
    threadSection(attach),
    findingsPart(findings),
    h('p.muted', describeMethod(attach)),
    ...(attach.notes ?? []).map((note) => h('p.muted', note)),
    section(
      'How it was measured',
      facts({
        Program:
          source && 'command' in source
            ? shellWords(source.command ?? [])
            : source && 'name' in source && source.name,
        Placement: source && 'placement' in source && source.placement,
        Samples: `${attach.samples ?? 0} by ${attach.event ?? '?'}, ${attach.hz ?? '?'} for each second of a thread's CPU time`,
        Lost: attach.lost,
        Took: mapNumber(attach.wall_s, seconds),
        'pinwise itself': mapNumber(
          attach.own_cpu_s,
          (ownCpuS) => `${seconds(ownCpuS)} of CPU time`,
        ),
        'A PAUSE here': mapNumber(attach.pause_ns, (pauseNs) =>
          quantity(pauseNs, 'ns'),
        ),
        ...hostFacts(attach.host),
        Tags: (attach.tags ?? []).join(', '),
      }),
    ),
  ]);
}

function describeMethod(record: SpinAttachRecord): string {
  const rate = record.pauses_per_s
    ? `About ${quantity(record.pauses_per_s, 'PAUSEs/s')}. `
    : '';
  return `${rate}Loops are classified by their code: what hints, what looks, what counts.`;
}

function sharePlan(record: SpinAttachRecord): ChartPlan | null {
  const { shares, cpu_s: cpu } = record;
  if (!shares || !cpu) return null;
  const rows = TIME_KINDS.map(([field, name, meaning]) => ({
    name,
    meaning,
    time: shares[field] ?? null,
  })).filter(({ time }) => time !== 0);
  return {
    name: 'Where CPU time goes',
    summary:
      rows
        .filter((r) => r.time)
        .map((r) => `${r.name} ${percent(r.time! / cpu)}`)
        .join(', ') + '.',
    panel: {
      height: 28 * rows.length,
      x: {
        title: 'share of the CPU time',
        ends: [0, 1],
        label: (share) => percent(share, 0),
      },
      y: {
        title: 'Kind',
        names: rows.map((r) => r.name),
        words: rows.map((r) => (r.time === null ? '–' : percent(r.time / cpu))),
      },
      series: [
        {
          box: 'bar',
          points: filterMap(rows, (r, y) =>
            r.time === null
              ? null
              : {
                  x: r.time / cpu,
                  y,
                  colour: r.name === 'work' ? COLOURS.neutral : seriesColour(1),
                  tooltip: `${r.name}: ${r.meaning}\n${seconds(r.time)}, ${percent(r.time / cpu)}`,
                },
          ),
        },
      ],
    },
    table: {
      caption: 'CPU time by kind',
      columns: [
        'Kind',
        ...numberColumns('CPU time', 'Share'),
        'What its loops do',
      ],
      rows: rows.map((r) => [
        r.name,
        r.time === null ? null : seconds(r.time),
        r.time === null ? null : percent(r.time / cpu),
        r.meaning,
      ]),
    },
  };
}

function placePart(place: SpinPlace): HTMLElement {
  const where = `${place.function ?? 'an unnamed function'} in ${place.module ?? 'code made at run time'}${typeof place.address === 'number' ? `, at 0x${place.address.toString(16)}` : ''}`;
  const callers = (place.callers ?? [])
    .map((c) => (c.functions ?? []).map((f) => f ?? '?').join(' ← '))
    .filter(Boolean);
  const code = place.code ?? [];
  return h(
    'div.place',
    h(
      'h3',
      `${nameKind(place.kind)}: ${seconds(place.cpu_s)} of CPU time, ${percent(place.share)}`,
    ),
    h(
      'p',
      h('span.mono', where),
      ` · ${count(place.samples ?? 0, 'sample')}, ${count(place.threads ?? 0, 'thread')}`,
    ),
    mapNumber(place.gap_hints, (gapHints) =>
      h(
        'p',
        `${count(gapHints, 'PAUSE')} from look to look${typeof place.hint_ns_seen === 'number' ? `; one took ${quantity(place.hint_ns_seen, 'ns')} there` : ''}.`,
      ),
    ),
    ...(place.algorithms ?? []).map((a) =>
      h(
        'p',
        h('strong', `${a.strength ?? 'perhaps'}: `),
        `${a.name ?? a.algorithm ?? ''}. ${a.why ?? ''}`,
        (a.tunables ?? []).length > 0
          ? ` Set by ${a.tunables!.join(', ')}.`
          : '',
      ),
    ),
    callers.length > 0 &&
      h('p.muted', `Called by ${callers.slice(0, 3).join('; ')}`),
    code.length > 0 &&
      h(
        'details',
        { open: code.length <= 12 },
        h('summary', 'The loop'),
        h('pre', { tabIndex: 0 }, code.join('\n')),
      ),
  );
}

function threadSection(record: SpinAttachRecord): HTMLElement {
  return section(
    'Threads',
    sortableTable({
      caption: 'CPU time of each thread, and of that spun',
      columns: [
        ...numberColumns('Thread', 'Process'),
        'Name',
        ...numberColumns('CPU time', 'Spun'),
      ],
      rows: (record.threads ?? []).map((t) => [
        figureCell(t.tid, String),
        figureCell(t.pid, String),
        { text: t.name ?? '' },
        figureCell(t.cpu_s, seconds),
        figureCell(t.spin_s, seconds),
      ]),
    }).element,
  );
}
