// Jitter in tables and a chart.

import { expect, test } from 'vitest';

import type { JitterRecord } from '../../records';
import { causeTable, cpuTable, longestChart, lostChart } from './shape';
import { panelsOf } from '../../plot';

const timer = { kind: 'cpu-interrupt', name: 'local_timer' } as const;
const card = { kind: 'interrupt', name: 'eth0-rx-1', irq: 38 } as const;

const RECORD: JitterRecord = {
  threshold_us: 5,
  gaps: 1717,
  cpus: [
    {
      cpu: 2,
      gaps: 1717,
      median_us: 7.1,
      longest_us: 412.5,
      lost_share: 0.0021,
      causes: [{ ...timer }, { ...card }, { kind: 'nmi', name: '' }],
    },
    { cpu: 3, gaps: 0, lost_share: 0 },
  ],
  causes: [
    { ...card, gaps: 212, lost_ms: 1.5, longest_us: 12.5, cpus: '2' },
    { kind: 'hypervisor', name: '', gaps: 2, lost_ms: 0.3, cpus: '2-3' },
  ],
  longest: [
    {
      cpu: 2,
      at_s: 1.5,
      length_us: 412.5,
      parts: [
        { ...card, us: 400 },
        { ...timer, us: 12.5 },
      ],
    },
    { cpu: 3, at_s: 0.5, length_us: 30, parts: [{ ...timer, us: 30 }] },
  ],
};

test('CPUs are rows; unknown figures are dashes', () => {
  const rows = cpuTable(RECORD).rows;
  expect(rows[0]?.slice(4)).toEqual([
    '412 µs',
    '0.2 %',
    'local_timer, eth0-rx-1 (IRQ 38)',
  ]);
  expect(rows[1]?.slice(1, 4)).toEqual(['0', '–', '–']);
});

test('causes have names', () => {
  expect(causeTable(RECORD).rows.map((row) => row.slice(0, 3))).toEqual([
    ['eth0-rx-1 (IRQ 38)', '212', '1.50 ms'],
    ['hypervisor', '2', '300 µs'],
  ]);
});

test('the longest gaps are points by their main cause', () => {
  const plan = longestChart(RECORD);
  const [panel] = panelsOf(plan, 600);
  expect(panel?.series.map(({ name }) => name)).toEqual([
    'interrupt',
    'cpu-interrupt',
  ]);
  expect(panel?.series[0]?.points[0]).toMatchObject({
    x: 1.5,
    y: 412.5,
    tooltip: 'CPU 2, 412 µs\neth0-rx-1 (IRQ 38) 400 µs, local_timer 12.5 µs',
  });
  expect(plan.table?.rows).toHaveLength(2);
});

const quiet = {
  watched_s: 2,
  lost_share: 0.002,
  causes: [{ ...timer, lost_ms: 4 }],
};
const UNEQUAL: JitterRecord = {
  causes: [timer, card],
  cpus: [
    { ...quiet, cpu: 0 },
    { ...quiet, cpu: 1 },
    {
      cpu: 2,
      watched_s: 2,
      lost_share: 0.008,
      causes: [
        { ...card, lost_ms: 10 },
        { ...timer, lost_ms: 4 },
      ],
    },
  ],
};

test('the lost time of a CPU is divided by cause', () => {
  const series = lostChart(UNEQUAL)?.panel?.series;
  expect(series?.map(({ name }) => name)).toEqual([
    'local_timer',
    'eth0-rx-1 (IRQ 38)',
    'others',
  ]);
  expect(series?.[1]?.points[2]).toMatchObject({ y: 2, low: 0.002, x: 0.007 });
  expect(lostChart(RECORD)).toBeNull();
});
