// Predicted placements beside the truth of a simulated machine.

import type { ChartPlan } from '../../chart';
import { change, signedPercent } from '../../format';
import { filterMap } from '../../lists';
import { mapNumber, positive } from '../../numbers';
import { seriesColour } from '../../plot';
import type { PredictedPlacement } from '../../records';
import { numberColumns } from '../../table';

/** The plan of predictions, a row each, with marks of their truth where it is known. */
export function withTruth(
  plan: ChartPlan,
  rows: readonly PredictedPlacement[],
  formatCost: (value: number) => string,
): ChartPlan {
  const { panel } = plan;
  const truth = filterMap(rows, ({ label, true_ratio: x }, y) =>
    positive(x) ? { x, y, tooltip: `${label}\ntrue: ${change(x)}` } : null,
  );
  if (!panel || truth.length === 0) return plan;
  return {
    ...plan,
    panel: {
      ...panel,
      series: [
        ...panel.series.map((one) => ({
          ...one,
          name: 'predicted',
          isHollow: true,
        })),
        {
          name: 'true, of the simulated machine',
          shape: 'diamond',
          size: 4,
          colour: seriesColour(1),
          points: truth,
        },
      ],
    },
    table: {
      caption: 'Predicted and true cost',
      columns: ['Placement', ...numberColumns('Predicted', 'True', 'Off by')],
      rows: rows.map((one) => [
        one.label,
        mapNumber(one.cost, formatCost),
        mapNumber(one.truth, formatCost),
        mapNumber(one.error, signedPercent),
      ]),
    },
  };
}
