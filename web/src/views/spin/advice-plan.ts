// The chart of spin settings beside the cost of parking and waking.

import type { ChartPlan } from '../../chart';
import { count, seconds } from '../../format';
import { filterMap } from '../../lists';
import { positive } from '../../numbers';
import { type Series, seriesColour } from '../../plot';
import type { AdviceRecord, SpinAdviceRecord } from '../../records';

/** How long each setting spins by default, beside the suggested time; null if no time is known. */
export function advicePlan(record: SpinAdviceRecord): ChartPlan | null {
  const rows = (record.advice ?? []).filter(
    (row) => positive(row.usual_ns) || positive(row.suggested_ns),
  );
  const budget = record.budget_ns;
  if (rows.length === 0 || !positive(budget)) return null;
  const series = (
    name: string,
    style: Partial<Series>,
    value: (row: AdviceRecord) => number | null | undefined,
  ): Series => ({
    name,
    ...style,
    points: filterMap(rows, (row, y) => {
      const ns = value(row);
      return positive(ns)
        ? {
            x: ns / 1e9,
            y,
            tooltip: `${row.setting ?? ''}\n${name}: ${seconds(ns / 1e9)}`,
          }
        : null;
    }),
  });
  const longer = rows.filter((row) => (row.usual_ns ?? 0) > 2 * budget).length;
  return {
    name: 'How long they spin',
    summary: `${longer} of ${count(rows.length, 'setting')} ${longer === 1 ? 'spins' : 'spin'} more than twice as long as parking and waking takes (the line).`,
    panel: {
      height: 24 * rows.length,
      x: { title: 'time before it parks', type: 'log', label: seconds },
      y: {
        title: 'Of',
        // Names of settings are too long for a phone, and in the list above.
        names: rows.map(
          (row) =>
            row.runtime?.replace(/ \(.*|,.*| before .*/, '') ??
            row.setting ??
            '',
        ),
      },
      rules: [{ x: budget / 1e9, label: 'parking and waking' }],
      series: [
        series(
          'suggested',
          { isHollow: true, colour: seriesColour(0) },
          (row) => row.suggested_ns,
        ),
        series('usual', { colour: seriesColour(1) }, (row) => row.usual_ns),
      ].filter((one) => one.points.length > 0),
    },
  };
}
