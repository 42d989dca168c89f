// Gaps in the time of CPUs, as tables and a chart.

import type { ChartPlan } from '../../chart';
import { count, percent, seconds, wholeNumber } from '../../format';
import type { JitterRecord, Maybe } from '../../records';
import { type Table, numberColumns } from '../../table';
import { type Series, seriesColour, seriesLook } from '../../plot';
import { causeName } from '../../words';

const formatMicroseconds = (value: Maybe<number>): string =>
  typeof value === 'number' ? seconds(value * 1e-6) : '–';

const formatMilliseconds = (value: Maybe<number>): string =>
  formatMicroseconds((value ?? 0) * 1e3);

export const cpuTable = (record: JitterRecord): Table => ({
  caption: `Gaps above ${formatMicroseconds(record.threshold_us)}`,
  columns: [
    'CPU',
    ...numberColumns('Gaps', 'Median', '99 %', 'Longest', 'Time lost'),
    'Mostly to',
  ],
  rows: (record.cpus ?? []).map((cpu) => [
    `CPU ${cpu.cpu}`,
    wholeNumber(cpu.gaps),
    formatMicroseconds(cpu.median_us),
    formatMicroseconds(cpu.p99_us),
    formatMicroseconds(cpu.longest_us),
    percent(cpu.lost_share),
    mainCauses(cpu).join(', '),
  ]),
});

export const causeTable = (record: JitterRecord): Table => ({
  caption: 'Causes of gaps, all CPUs together',
  columns: [
    'Cause',
    ...numberColumns('Gaps', 'Time', 'Longest'),
    'CPUs',
    'Device',
  ],
  rows: (record.causes ?? []).map((cause) => [
    causeName(cause),
    wholeNumber(cause.gaps),
    formatMilliseconds(cause.lost_ms),
    formatMicroseconds(cause.longest_us),
    cause.cpus,
    cause.device,
  ]),
});

type Cpu = NonNullable<JitterRecord['cpus']>[number];

const lostShare = ({ lost_share }: Cpu): number => lost_share ?? 0;

const mainCauses = ({ causes }: Cpu): string[] =>
  (causes ?? []).slice(0, 2).map(causeName);

/** Causes with a colour; of many CPUs those that lost most are drawn. */
const MAX_COLOURS = 5;
const MAX_BARS = 64;

/** The share of time that each CPU lost, divided by cause; null if no cause is known. */
export function lostChart(record: JitterRecord): ChartPlan | null {
  const known = (record.cpus ?? []).filter(
    ({ causes, watched_s }) => causes?.length && watched_s,
  );
  const worst = new Set(
    [...known].sort((a, b) => lostShare(b) - lostShare(a)).slice(0, MAX_BARS),
  );
  const cpus = known.filter((cpu) => worst.has(cpu));
  if (cpus.length === 0) return null;
  const shareOf = (cpu: Cpu, name: string): number =>
    (cpu.causes ?? [])
      .filter((cause) => causeName(cause) === name)
      .reduce((sum, { lost_ms }) => sum + (lost_ms ?? 0), 0) /
    (cpu.watched_s! * 1e3);
  const names = (record.causes ?? []).slice(0, MAX_COLOURS).map(causeName);
  const ends = cpus.map(() => 0);
  const bar = (
    name: string,
    at: number,
    share: (cpu: Cpu, row: number) => number,
  ): Series => ({
    name,
    colour: seriesColour(at),
    box: 'bar',
    points: cpus.map((cpu, row) => {
      const [low, lost] = [ends[row]!, share(cpu, row)];
      ends[row] = low + lost;
      return {
        x: low + lost,
        y: row,
        low,
        tooltip: `CPU ${cpu.cpu}, ${percent(lost)}: ${name}`,
      };
    }),
  });
  const causes = names.map((name, at) =>
    bar(name, at, (cpu) => shareOf(cpu, name)),
  );
  const others = bar('others', MAX_COLOURS, (cpu, row) =>
    Math.max(0, lostShare(cpu) - ends[row]!),
  );
  return {
    name: 'Time lost on each CPU',
    summary: `By cause${cpus.length < known.length ? `; the ${MAX_BARS} CPUs that lost most` : ''}.`,
    panel: {
      height: 20 * cpus.length,
      x: {
        title: 'share of time lost',
        hasZero: true,
        label: (share) => percent(share, 2),
      },
      y: {
        title: 'CPU',
        names: cpus.map(({ cpu }) => `CPU ${cpu}`),
        words: cpus.map((cpu) => percent(cpu.lost_share)),
      },
      series: [...causes, others].filter(({ points }) =>
        points.some(({ x, low }) => x - low! > 1e-6),
      ),
    },
  };
}

/** The longest gaps over time, a series for each kind of main cause. */
export function longestChart(record: JitterRecord): ChartPlan {
  const gaps = (record.longest ?? []).map((gap) => {
    const parts = gap.parts ?? [];
    return {
      at: gap.at_s ?? 0,
      length: gap.length_us ?? 0,
      cpu: `CPU ${gap.cpu}`,
      kind: parts[0]?.kind ?? 'unknown',
      words: parts
        .map((part) => `${causeName(part)} ${formatMicroseconds(part.us)}`)
        .join(', '),
    };
  });
  const kinds = [...new Set(gaps.map(({ kind }) => kind))];
  return {
    name: 'Longest gaps',
    summary: `The ${count(gaps.length, 'longest gap', 'longest gaps')} by start time${kinds.length === 1 ? `; cause: ${kinds[0]}` : ''}.`,
    panel: {
      height: 200,
      x: { title: 'time since the start', label: (s) => seconds(s) },
      y: {
        title: 'length of the gap',
        hasZero: true,
        label: formatMicroseconds,
      },
      series: kinds.map((name, at) => ({
        name,
        ...seriesLook(at),
        points: gaps
          .filter(({ kind }) => kind === name)
          .map((gap) => ({
            x: gap.at,
            y: gap.length,
            tooltip: `${gap.cpu}, ${formatMicroseconds(gap.length)}\n${gap.words}`,
          })),
      })),
    },
    table: {
      caption: 'The longest gaps',
      columns: ['CPU', ...numberColumns('At', 'Length'), 'Taken by'],
      rows: gaps.map((gap) => [
        gap.cpu,
        seconds(gap.at),
        formatMicroseconds(gap.length),
        gap.words,
      ]),
    },
  };
}
