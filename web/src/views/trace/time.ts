// What the threads of a trace without a timeline spent their time on.

import type { ChartPlan } from '../../chart';
import { percent, seconds } from '../../format';
import { number } from '../../fields';
import { seriesColour } from '../../plot';
import type { TraceRecord } from '../../records';

/** Time of all threads together: running, queued, and blocked; null if it is unknown. */
export function timePlan(record: TraceRecord): ChartPlan | null {
  const { totals, waits, findings } = record;
  const life = totals?.life_s ?? 0;
  const running = totals?.cpu_s ?? 0;
  const queued = waits?.total_s ?? 0;
  if (life <= 0) return null;
  const lock =
    number(
      findings?.find(({ check }) => check === 'lock_waits')?.evidence?.[
        'seconds'
      ],
    ) ?? 0;
  const kinds: readonly (readonly [string, number])[] = [
    ['running', running],
    ['queued for a CPU', queued],
    ['blocked in a lock', lock],
    ['blocked otherwise', life - running - queued - lock],
  ];
  let end = 0;
  const parts = kinds
    .filter(([, time]) => time > life / 1000)
    .map(([name, time]) => {
      const low = end;
      end += time;
      return { name: `${name} ${percent(time / life)}`, time, low, high: end };
    });
  return {
    name: 'Time of the threads',
    summary: 'Of all threads together, as far as looks show.',
    panel: {
      height: 32,
      x: { title: 'thread time', ends: [0, end], label: (s) => seconds(s) },
      y: { title: '', names: ['threads'] },
      series: parts.map(({ name, time, low, high }, at) => ({
        name,
        colour: seriesColour(at),
        box: 'cell',
        points: [
          {
            x: (low + high) / 2,
            y: 0,
            low,
            high,
            tooltip: `${name}\n${seconds(time)}`,
          },
        ],
      })),
    },
  };
}
