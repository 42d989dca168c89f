// A moment of the live view: how busy the CPUs are, and which threads use them.

import { type ChartPlan, chart } from '../../chart';
import { h } from '../../dom';
import { list } from '../../fields';
import { count, percent, quantity, seconds } from '../../format';
import { adviceLine } from '../../method';
import { finite, mapNumber } from '../../numbers';
import type { Maybe, TopCpu, TopRecord, TopThread } from '../../records';
import { type Cell, sortableTable, figureCell } from '../../sortable';
import type { AnyRecord } from '../../source';
import { numberColumns } from '../../table';
import { type Page, type View, stack } from '../../view';
import { facts, section } from '../../words';
import { splitIdle } from './shape';

const shareCell = (value: Maybe<number>): Cell =>
  figureCell(value, (own) => percent(own / 100));

/** Draws a `pinwise.top/1`. */
export function topView(record: AnyRecord, _page: Page): View {
  const top = record as TopRecord;
  const cpus = list(top.cpus).filter((cpu) => finite(cpu.busy_percent));
  const sharing = top.smt_sharing;
  const [busy, idle] = splitIdle(list(top.threads));
  return stack('article', '', [
    h('p.verdict', top.answer?.sentence ?? ''),
    adviceLine(top.answer?.advice),
    cpus.length > 0 && chart(busyPlan(cpus)),
    section(
      'Threads',
      threadTable('Shares are of one CPU over the interval', busy),
      idle.length > 0 &&
        h(
          'details',
          h('summary', count(idle.length, 'idle thread')),
          threadTable('Threads that did not run', idle),
        ),
    ),
    section(
      'How it was watched',
      facts({
        Host: top.host,
        Over: mapNumber(top.interval_s, seconds),
        By: top.tier,
        'Overhead per context switch': mapNumber(
          top.cost_ns_per_switch,
          (costNsPerSwitch) => quantity(costNsPerSwitch, 'ns'),
        ),
        'Cores shared by SMT siblings while others idled': mapNumber(
          sharing?.avoidable,
          (avoidable) => avoidable.toFixed(1),
        ),
        'Threads not listed': top.threads_left_out,
      }),
      ...list(top.notes).map((note) => h('p.muted', note)),
    ),
  ]);
}

function busyPlan(cpus: readonly TopCpu[]): ChartPlan {
  const words = (cpu: TopCpu): string =>
    `${percent(cpu.busy_percent! / 100)}${cpu.busiest?.name ? `  ${cpu.busiest.name}` : ''}`;
  return {
    name: 'How busy the CPUs were',
    summary: 'At the right: the thread that ran there longest.',
    panel: {
      height: 22 * cpus.length,
      x: {
        title: 'share of the time',
        ends: [0, 1],
        label: (value) => percent(value, 0),
      },
      y: {
        title: 'CPU',
        names: cpus.map((cpu) => `CPU ${cpu.cpu ?? '–'}`),
        words: cpus.map((cpu) => words(cpu)),
      },
      series: [
        {
          box: 'bar',
          points: cpus.map((cpu, y) => ({
            x: cpu.busy_percent! / 100,
            y,
            tooltip: `CPU ${cpu.cpu}: ${words(cpu)}`,
          })),
        },
      ],
    },
  };
}

const threadTable = (
  caption: string,
  threads: readonly TopThread[],
): HTMLElement =>
  sortableTable({
    caption,
    columns: [
      'Name',
      ...numberColumns('CPU time', 'Queued', 'CPU'),
      'State',
      ...numberColumns('PID', 'Thread', 'Migrations/s', 'Switches/s'),
      'Allowed CPUs',
    ],
    rows: threads.map((thread) => {
      const figure = (value: Maybe<number>, digits = 0): Cell =>
        figureCell(value, (own) => own.toFixed(digits));
      return [
        { text: thread.name ?? '–' },
        shareCell(thread.cpu_percent),
        shareCell(thread.wait_percent),
        figure(thread.cpu),
        { text: thread.state ?? '–' },
        figure(thread.process),
        figure(thread.thread),
        figure(thread.migrations_per_s, 1),
        figure(thread.switches_per_s, 1),
        { text: thread.allowed ?? '–' },
      ];
    }),
  }).element;
