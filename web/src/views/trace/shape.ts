// The figures and tables of a trace above and below the timeline.

import { bytes, count, percent, seconds, wholeNumber } from '../../format';
import { groupBy } from '../../lists';
import type {
  BlockedPlace,
  LowerBound,
  Maybe,
  MigrationCounts,
  SharingCauses,
  ThreadRecord,
  TraceRecord,
  WaitCauses,
} from '../../records';
import { type SortableTable, figureCell } from '../../sortable';
import { type Table, numberColumns } from '../../table';
import { type Facts, causeName, shellWords } from '../../words';
import { finite, mapNumber } from '../../numbers';
import type { Spans } from './decode';
import { CAUSE_WORDS } from './describe';

const CROSSINGS: readonly [keyof MigrationCounts, string][] = [
  ['smt', 'to an SMT sibling'],
  ['core', 'across cores'],
  ['llc', 'across LLCs'],
  ['numa', 'across NUMA nodes'],
  ['package', 'across packages'],
  ['unknown', 'boundary unknown'],
];

const BLAME_WORDS: Readonly<Record<string, string>> = {
  scheduler_s: 'the scheduler: an allowed core idled',
  mask_s: 'the mask: only forbidden cores idled',
  other_processes_s: 'other programs: the sibling ran one',
};

function sumMigrations(moves: Maybe<MigrationCounts>): number | null {
  return moves
    ? CROSSINGS.reduce((sum, [name]) => sum + (moves[name] ?? 0), 0)
    : null;
}

/** The main result of the trace in one sentence. */
export function verdictSentence(record: TraceRecord): string {
  if (record.answer?.sentence) return record.answer.sentence;
  const first = record.findings?.[0];
  if (first?.sentence) return first.sentence;
  const totals = record.totals ?? {};
  return `${count(totals.threads ?? 0, 'thread')} ran for ${seconds(totals.cpu_s)} of CPU time in ${seconds(record.elapsed_s)}; no findings.`;
}

/** What to do next. Of a trace by polling, a finding's advice goes on from its own sentence, and a
 * command below the headline does as it says. */
export function adviceOf(record: TraceRecord): Maybe<string> {
  const advice = (record.answer ?? record.findings?.[0])?.advice;
  const finding = record.findings?.find(({ check }) => check === 'queued');
  return isPolled(record)
    ? advice?.replace(finding?.advice ?? '', '').trim()
    : advice;
}

/** Has it no timeline to draw? Polling sees totals, not slices. */
export const isPolled = ({ tier, timeline }: TraceRecord): boolean =>
  tier === 'proc' && !timeline?.packed?.count;

/** The command that traces the same in the most detail available; else the one that says what that
 * takes. */
export function betterTrace({ tiers, source }: TraceRecord): string {
  const best = tiers?.filter(({ available }) => available).at(-1)?.tier;
  const { kind, command, pid, placement } = (source ?? {}) as {
    kind?: string;
    command?: string[];
    pid?: number;
    placement?: string;
  };
  const target =
    kind === 'command'
      ? [
          ...(placement && placement !== 'os-default'
            ? ['--place', placement]
            : []),
          '--',
          ...(command ?? []),
        ]
      : kind === 'process'
        ? ['--pid', `${pid}`]
        : ['--all'];
  return best && best !== 'proc'
    ? shellWords(['pinwise', 'trace', '--tier', best, ...target])
    : 'pinwise trace tiers';
}

/** The main figures; those that the source did not report are null. */
export function headlineFigures(record: TraceRecord): Facts {
  const totals = record.totals ?? {};
  const bounded = (figure: LowerBound, text: string): string => {
    const isLower = record.lower_bounds?.includes(figure);
    const isUpper =
      (figure === 'queued' && record.waits?.is_upper_bound) ||
      (figure === 'cpu_time' && totals.cpu_is_upper_bound);
    if (isLower) return `${isUpper ? 'about' : 'at least'} ${text}`;
    return isUpper ? `at most ${text}` : text;
  };
  const sharing = record.avoidable_smt_sharing;
  const idle = record.idle_while_waiting;
  return {
    Elapsed: mapNumber(record.elapsed_s, seconds),
    'CPU time': mapNumber(totals.cpu_s, (value) =>
      bounded('cpu_time', seconds(value)),
    ),
    Threads: mapNumber(totals.threads, (value) =>
      bounded(
        'threads',
        `${value} in ${count(totals.processes ?? 0, 'process', 'processes')}`,
      ),
    ),
    Switches: mapNumber(totals.switches, (value) =>
      bounded(
        'switches',
        `${value.toLocaleString('en-US')}${mapNumber(totals.preemptions, (p) => `, ${p.toLocaleString('en-US')} of them preemptions`) ?? ''}`,
      ),
    ),
    'Moves between CPUs': mapNumber(sumMigrations(totals.migrations), (value) =>
      bounded('migrations', value.toLocaleString('en-US')),
    ),
    'Waited in run queues': mapNumber(record.waits?.total_s, (value) =>
      bounded(
        'queued',
        `${seconds(value)}${mapNumber(record.waits?.longest_s, (longest) => `, longest ${seconds(longest)}`) ?? ''}`,
      ),
    ),
    'Avoidable SMT sharing': mapNumber(
      sharing?.seconds,
      (value) =>
        `${seconds(value)} (${percent((sharing?.percent ?? 0) / 100)} of CPU time)`,
    ),
    'Queued while a CPU idled': mapNumber(
      idle?.seconds,
      (value) =>
        `${seconds(value)}${mapNumber(idle?.episodes, (many) => ` in ${count(many, 'episode')}`) ?? ''}`,
    ),
    Tier: record.tier,
    'Cost of tracing': mapNumber(
      record.cost?.percent_of_cpu,
      (value) => `about ${percent(value / 100, 2)} of CPU time`,
    ),
  };
}

/** Moves by the boundary that was crossed; null if there were none. */
export function migrationTable(record: TraceRecord): Table | null {
  const moves = record.totals?.migrations;
  const all = sumMigrations(moves);
  if (!moves || !all) return null;
  const rows = CROSSINGS.filter(([name]) => moves[name]).map(
    ([name, words]) => [
      words,
      moves[name]!.toLocaleString('en-US'),
      percent(moves[name]! / all),
    ],
  );
  return {
    caption: 'Moves between CPUs, by the outermost boundary crossed',
    columns: ['Boundary', ...numberColumns('Moves', 'Share of moves')],
    rows,
  };
}

/** A table of causes with their share of the total time; null if no time is known. */
function causeTable(
  caption: string,
  what: string,
  shown: Maybe<WaitCauses | SharingCauses>,
  words: (name: string) => string,
): Table | null {
  const entries = Object.entries(shown ?? {}).filter(
    (part): part is [string, number] => typeof part[1] === 'number',
  );
  const all = entries.reduce((sum, [, value]) => sum + value, 0);
  if (all <= 0) return null;
  entries.sort((a, b) => b[1] - a[1]);
  const rows = entries
    .filter(([, value]) => value > 0)
    .map(([name, value]) => [
      words(name),
      seconds(value),
      percent(value / all),
    ]);
  return {
    caption,
    columns: [what, ...numberColumns('Time', 'Share of this time')],
    rows,
  };
}

export function waitTable(record: TraceRecord): Table | null {
  return causeTable(
    'Why threads waited in run queues',
    'Cause',
    record.waits?.because,
    (name) => CAUSE_WORDS[name.replace(/_s$/, '')] ?? name,
  );
}

const BLOCKED_WORDS: Readonly<Record<string, string>> = {
  lock: 'a lock, work or another thread (futex)',
  mutex: 'a lock',
  'page-fault': 'pages of its memory (page faults)',
  condition:
    'work or another thread (condition variable, semaphore or similar)',
  thread: 'the end of another thread (join)',
  events: 'events (poll, epoll, select)',
  timer: 'a timer (sleep)',
  disk: 'a disk or device',
  pipe: 'a pipe',
  socket: 'a socket',
  terminal: 'a terminal',
  child: 'a child process',
  signal: 'a signal',
  'file-lock': 'a lock of a file (flock)',
  stopped: 'a signal to continue (stopped)',
  other: 'other calls',
  unknown: 'unknown: the kernel did not permit to look',
};

/** What blocked threads waited for; null if that was not observed. */
export function blockedTable({ blocked }: TraceRecord): Table | null {
  if (!blocked?.length) return null;
  const rows = blocked.flatMap((process) =>
    (process.parts ?? []).map((part) => [
      `${process.name ?? ''} ${process.process ?? ''}`.trim(),
      BLOCKED_WORDS[part.what ?? ''] ?? part.what,
      wholeNumber(part.looks),
      percent((part.looks ?? 0) / Math.max(process.looks ?? 0, 1)),
    ]),
  );
  return {
    caption: 'What threads waited for when a look found them blocked',
    columns: [
      'Process',
      'Waiting for',
      ...numberColumns('Looks', 'Share of its looks'),
    ],
    rows,
  };
}

/** With fewer looks, shares mean nothing. */
const MIN_LOOKS = 5;

/** Functions in which threads waited for a lock, the most frequent first; null if none is known. */
export function lockTable({ blocked, findings }: TraceRecord): Table | null {
  const places = (blocked ?? [])
    .flatMap(({ threads }) => threads ?? [])
    .flatMap((thread) => thread.places ?? [])
    .filter(({ what, place }) => what === 'mutex' && place);
  const countLooks = (all: readonly BlockedPlace[]): number =>
    all.reduce((sum, { looks }) => sum + (looks ?? 0), 0);
  const all = countLooks(places);
  if (all < MIN_LOOKS) return null;
  const waited = findings?.find(({ check }) => check === 'lock_waits')
    ?.evidence?.['seconds'];
  const shares = [...groupBy(places, ({ place }) => place!)]
    .map(([place, at]) => [place, countLooks(at) / all] as const)
    .sort((a, b) => b[1] - a[1]);
  return {
    caption: `Where threads waited for a lock, in ${count(all, 'look')}`,
    columns: ['Function', ...numberColumns('Share of looks', 'Time, about')],
    rows: shares.map(([place, share]) => [
      place,
      percent(share, 0),
      mapNumber(waited, (time) => seconds(time * share)),
    ]),
  };
}

export function sharingTable(record: TraceRecord): Table | null {
  return causeTable(
    'Who caused avoidable SMT sharing',
    'Cause',
    record.avoidable_smt_sharing?.by,
    (name) => BLAME_WORDS[name] ?? name,
  );
}

/** The pages on each NUMA node; null if they were not observed. */
export function memoryTable({ memory }: TraceRecord): Table | null {
  if (!memory) return null;
  const nodes = memory.nodes ?? [];
  const all = nodes.reduce((sum, node) => sum + (node.bytes ?? 0), 0);
  const local = memory.local;
  const share = (value: Maybe<number>): string => percent((value ?? 0) / 100);
  return {
    caption: `Memory: ${bytes(all)} on average over ${count(memory.looks ?? 0, 'look')}, ${share(memory.huge_percent)} in huge pages${local ? `; local ${share(local.percent)} (${share(local.low)} to ${share(local.high)}) if all threads use all pages alike` : ''}`,
    columns: [
      'NUMA node',
      ...numberColumns(
        'Pages',
        'Share of pages',
        'At the last look',
        'CPU time',
      ),
    ],
    rows: nodes.map((node) => [
      `node ${node.node}`,
      bytes(node.bytes),
      percent((node.bytes ?? 0) / Math.max(all, 1)),
      bytes(node.last_bytes),
      share(node.cpu_percent),
    ]),
  };
}

/** Time taken by interrupts and softirqs; null if they were not traced. */
export function interruptTable({ interrupts }: TraceRecord): Table | null {
  if (!interrupts) return null;
  const share = interrupts.stolen_percent;
  return {
    caption: `Interrupts and softirqs: ${seconds(interrupts.stolen_s)} while the program had the CPU${finite(share) ? `, ${percent(share / 100)} of its CPU time` : ''}`,
    columns: [
      'Cause',
      ...numberColumns('Count', 'Time', 'From the program'),
      'Of CPUs’ time',
    ],
    rows: (interrupts.causes ?? []).map((cause) => [
      causeName(cause),
      wholeNumber(cause.count),
      seconds(cause.seconds),
      seconds(cause.stolen_s),
      (cause.cpus ?? [])
        .map((on) => `CPU ${on.cpu}: ${percent((on.percent ?? 0) / 100)}`)
        .join(', '),
    ]),
  };
}

/** The threads, those with most CPU time first. */
export function threadTable(record: TraceRecord): SortableTable {
  const left = record.threads_left_out ?? 0;
  return {
    caption: `Every thread${left ? `; ${count(left, 'thread')} with less CPU time left out` : ''}`,
    columns: [
      'Thread',
      ...numberColumns(
        'CPU time',
        'Waited',
        'Switches',
        'Preempted',
        'Moves',
        'Shared a core',
      ),
      'CPUs, longest first',
      'Allowed',
      'Seen blocked in',
    ],
    rows: (record.threads ?? []).map((row) => [
      { text: `${row.name ?? ''} ${row.thread ?? ''}`.trim() },
      figureCell(row.cpu_s, seconds),
      figureCell(row.wait_s, seconds),
      figureCell(row.switches, wholeNumber),
      figureCell(row.preemptions, wholeNumber),
      figureCell(sumMigrations(row.migrations), wholeNumber),
      figureCell(row.shared_s, seconds),
      { text: describeCpus(row), sort: row.cpus?.[0]?.cpu ?? null },
      { text: row.allowed ?? '–' },
      { text: describeBlocked(record, row.thread) },
    ]),
  };
}

/** "mutex at book" for each kind of wait in which looks found a thread. */
function describeBlocked({ blocked }: TraceRecord, id: Maybe<number>): string {
  const thread = (blocked ?? [])
    .flatMap(({ threads }) => threads ?? [])
    .find(({ thread }) => thread === id);
  return (thread?.parts ?? [])
    .map(({ what }) => {
      const places = (thread?.places ?? [])
        .filter((one) => one.what === what && one.place)
        .map(({ place }) => place);
      return `${BLOCKED_WORDS[what ?? ''] ?? what}${places.length > 0 ? ` at ${places.join(', ')}` : ''}`;
    })
    .join('; ');
}

function describeCpus(row: ThreadRecord): string {
  const cpus = row.cpus ?? [];
  const first = cpus
    .slice(0, 4)
    .map(
      ({ cpu, cpu_s }) =>
        `${cpu} (${percent((cpu_s ?? 0) / Math.max(row.cpu_s ?? 0, 1e-12), 0)})`,
    );
  return (
    first.join(', ') + (cpus.length > 4 ? ` and ${cpus.length - 4} more` : '')
  );
}

/** Indices of the longest waits, the longest first. */
export function findLongestWaits(waits: Spans, most: number): number[] {
  const { count, length } = waits;
  // Sorting only lengths is fast, and then only waits as long as the last shown one are sorted.
  const least = length.slice().sort()[Math.max(0, count - most)] ?? 0;
  const long: number[] = [];
  for (let at = 0; at < count; at += 1) if (length[at]! >= least) long.push(at);
  return long.sort((a, b) => length[b]! - length[a]! || a - b).slice(0, most);
}

/** Use of each CPU within the trace; null if the record has none. */
export function cpuTable(record: TraceRecord): Table | null {
  const cpus = record.cpus ?? [];
  if (cpus.length === 0) return null;
  const shareOfTime = (value: Maybe<number>): string =>
    value === null || value === undefined
      ? '–'
      : percent(value / Math.max(record.elapsed_s ?? 0, 1e-12));
  const hasUnknown = cpus.some(({ unknown_s }) => (unknown_s ?? 0) > 0);
  return {
    caption: 'Each CPU: shares of the time of the trace',
    columns: [
      'CPU',
      ...numberColumns(
        'Traced threads',
        'Others',
        'Idle',
        ...(hasUnknown ? ['Unknown'] : []),
        'Switches',
      ),
    ],
    rows: cpus.map((cpu) => [
      `CPU ${cpu.cpu}`,
      shareOfTime(cpu.own_s),
      shareOfTime(cpu.foreign_s),
      shareOfTime(cpu.idle_s),
      ...(hasUnknown ? [shareOfTime(cpu.unknown_s)] : []),
      wholeNumber(cpu.switches),
    ]),
  };
}

export function coreTable(record: TraceRecord): Table | null {
  const cores = (record.cores ?? []).filter(
    (core) => (core.own_s ?? 0) > 0 || (core.busy_s ?? 0) > 0,
  );
  if (cores.length === 0) return null;
  return {
    caption: 'Each core that was used',
    columns: [
      'Core',
      'CPUs',
      ...numberColumns(
        'CPU time of traced threads',
        'Busy',
        'Several CPUs busy',
      ),
    ],
    rows: cores.map((core) => [
      `core ${core.core}`,
      core.cpus,
      seconds(core.own_s),
      seconds(core.busy_s),
      seconds(core.shared_s),
    ]),
  };
}

/** The content of the timeline in a sentence with figures. */
export function timelineSummary(record: TraceRecord): string {
  const timeline = record.timeline;
  const slices = timeline?.packed?.count ?? null;
  const span = seconds(record.elapsed_s);
  const cpus = count(
    record.cpus?.length ?? timeline?.spans?.length ?? 0,
    'CPU',
  );
  if (slices === null)
    return `Shares of ${span} on ${cpus}, ${seconds(timeline?.span_s)} each.`;
  const waits = timeline?.waits;
  const out = waits?.left_out;
  const left = out?.count
    ? ` Waits below ${seconds((waits?.shortest_ns ?? 0) * 1e-9)}, and those beyond the longest that are kept, are not drawn.`
    : '';
  return `${count(slices, 'slice')} of ${count(record.totals?.threads ?? 0, 'thread')} on ${cpus} within ${span}.${left}`;
}
