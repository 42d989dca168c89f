// Files saved of a chart.

import { expect, test } from 'vitest';

import type { Panel } from './plot';
import { toCsv, fileName } from './save';

const rows: Panel = {
  height: 60,
  x: { title: 'wall time' },
  y: { title: 'Arm', names: ['one-llc', '=1+1, "quoted"'] },
  series: [
    {
      interval: 'x',
      points: [
        { x: 0.25, y: 0, low: 0.2, high: 0.3, tooltip: 'a' },
        { x: 0.5, y: 1.1, low: null, high: null, tooltip: 'b' },
      ],
    },
    { line: 'straight', points: [{ x: 0, y: 0 }] },
  ],
};

test('CSV has a line for each point, with names of rows, without guides', () => {
  expect(toCsv([rows]).split('\r\n')).toEqual([
    'x axis,x,y axis,y,series,low,high,value',
    'wall time,0.25,Arm,one-llc,,0.2,0.3,',
    `wall time,0.5,Arm,"'=1+1, ""quoted""",,,,`,
    '',
  ]);
});

test('CSV has times as dates, and cells with the label of their column', () => {
  const csv = toCsv([
    {
      height: 9,
      x: { title: 'time', type: 'utc' },
      y: { title: 'figure' },
      series: [{ name: 'host', points: [{ x: 0, y: -2 }] }],
    },
    {
      height: 9,
      x: { title: 'CPUs', label: (at) => `${2 ** at}` },
      y: { title: 'Algorithm', names: ['spins'] },
      series: [
        { box: 'cell', points: [{ x: 3, y: 0, value: 1.5, tooltip: 'c' }] },
      ],
    },
  ]);
  expect(csv).toContain('time,1970-01-01T00:00:00.000Z,figure,-2,host,,,');
  expect(csv).toContain('CPUs,8,Algorithm,spins,,,,1.5');
});

test('files are named after the chart', () => {
  expect(fileName('Change against os-default', 'svg')).toBe(
    'pinwise-change-against-os-default.svg',
  );
  expect(fileName('…', 'csv')).toBe('pinwise-chart.csv');
});
