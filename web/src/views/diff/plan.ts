// Ratios drawn as changes, with their intervals.

import type { ChartPlan } from '../../chart';
import { type Look, ratioAxis, seriesColour } from '../../plot';
import { ratioRange } from '../../scales';
import { type RatioRow, VERDICTS, changeText, ratioSummary } from './shape';

const LOOKS: Readonly<Record<string, Look>> = {
  lower: { shape: 'triangle', turn: -90, colour: seriesColour(0) },
  higher: { shape: 'triangle', turn: 90, colour: seriesColour(0) },
  same: { shape: 'square' },
};

/** Ratios with their intervals, a row each. */
export function ratioPlan(
  rows: readonly RatioRow[],
  name: string,
  axis: string,
  summary = ratioSummary(rows),
): ChartPlan {
  const ends = ratioRange(
    rows.flatMap((r) => [r.ratio, r.low ?? r.ratio, r.high ?? r.ratio]),
    0.02,
  );
  return {
    name,
    summary,
    panel: {
      height: 28 * rows.length,
      x: ratioAxis(axis, ends),
      y: {
        title: 'Figure',
        names: rows.map((r) => r.name),
        words: rows.map((r) => VERDICTS[r.verdict] ?? r.verdict),
      },
      rules: [{ x: 1 }],
      series: [
        {
          interval: 'x',
          size: 5,
          points: rows.map((r, y) => ({
            ...(LOOKS[r.verdict] ?? { isHollow: true }),
            x: r.ratio,
            y,
            low: r.low,
            high: r.high,
            tooltip: `${r.name}\n${changeText(r) ?? ''}: ${VERDICTS[r.verdict] ?? r.verdict}`,
          })),
        },
      ],
    },
  };
}
