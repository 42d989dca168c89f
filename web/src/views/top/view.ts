// A moment of the live view: how busy the CPUs are, and which threads use them.

import { type ChartPlan, chart } from '../../chart';
import { h } from '../../dom';
import { list } from '../../fields';
import { count, percent, quantity, seconds } from '../../format';
import { commandList } from '../../headline';
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

/** A thread that uses less of a CPU, in per cent, is not worth a profile. */
const MIN_WORTH_PERCENT = 5;

/** Draws a `pinwise.top/1`. */
export function topView(record: AnyRecord, _page: Page): View {
  const top = record as TopRecord;
  const cpus = list(top.cpus).filter((cpu) => finite(cpu.busy_percent));
  const sharing = top.smt_sharing;
  const [busy, idle] = splitIdle(list(top.threads));
  const most = busiestThread(top);
  return stack('article', '', [
    h('p.verdict', topSentence(top, cpus)),
    (most?.cpu_percent ?? 0) < MIN_WORTH_PERCENT
      ? adviceLine('Nothing uses much of a CPU: there is nothing to profile.')
      : commandList([
          [
            most!.process === most!.thread
              ? 'See what it spends its time on'
              : 'See what its process spends time on',
            `pinwise profile --pid ${most!.process ?? most!.thread}`,
          ],
        ]),
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

const busiestThread = (top: TopRecord): TopThread | undefined =>
  list(top.threads)
    .filter((thread) => finite(thread.cpu_percent))
    .sort((a, b) => b.cpu_percent! - a.cpu_percent!)[0];

/** "2 of 2 CPUs are busy; rustc (21601) uses the most: 99.1 % of a CPU." */
function topSentence(top: TopRecord, cpus: readonly TopCpu[]): string {
  const busy = cpus.reduce((sum, cpu) => sum + cpu.busy_percent! / 100, 0);
  const most = busiestThread(top);
  const whole =
    cpus.length > 0
      ? `${busy.toFixed(1)} of ${count(cpus.length, 'CPU')} busy`
      : `${count(top.threads_running ?? 0, 'thread')} running`;
  if (!most) return `${whole}.`;
  return `${whole}; ${most.name ?? 'thread'} (${most.thread}) uses the most: ${percent(most.cpu_percent! / 100)} of a CPU.`;
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
      ...numberColumns('Thread', 'Migrations/s', 'Switches/s'),
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
        figure(thread.thread),
        figure(thread.migrations_per_s, 1),
        figure(thread.switches_per_s, 1),
        { text: thread.allowed ?? '–' },
      ];
    }),
  }).element;
