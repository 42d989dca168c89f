// Gaps in the time of CPUs, as tables and a chart.

import type { ChartPlan } from '../../chart';
import { count, percent, seconds, wholeNumber } from '../../format';
import type { JitterRecord, Maybe } from '../../records';
import { type Table, numberColumns } from '../../table';
import { seriesLook } from '../../plot';
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
    (cpu.causes ?? []).slice(0, 2).map(causeName).join(', '),
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
