// What a scan of binaries found: in groups of equal loops, and drawn.

import type { ChartPlan } from '../../chart';
import { list } from '../../fields';
import { quantity } from '../../format';
import { filterMap, groupBy } from '../../lists';
import { finite, positive } from '../../numbers';
import { seriesLook, separateMarks } from '../../plot';
import type { SpinScan } from '../../records';

type Loop = NonNullable<SpinScan['loops']>[number];

/** The chip of the machine that scanned, if its PAUSE was measured. */
const HERE = 'here';

/** The longest time between two checks on this machine or its model, else on any known chip. */
function findGap(
  { gaps: all }: Loop,
  { assumed_as: model }: SpinScan,
): { ns: number; chip: string } | null {
  const gaps = filterMap(list(all), ({ ns, chip }) =>
    finite(ns) ? { ns, chip: chip ?? '' } : null,
  );
  return (
    gaps.find(({ chip }) => chip === HERE || chip === model) ??
    gaps.sort((a, b) => b.ns - a.ns)[0] ??
    null
  );
}

/** "zen-4 (this model)" of the chip that this machine is by its model. */
export const nameChip = (
  id: string,
  { assumed_as: model }: SpinScan,
): string => (id === model ? `${id} (this model)` : id);

/** Groups loops that differ only by their address; those that check least often come first. */
export function groupEqualLoops(scan: SpinScan): [Loop, ...Loop[]][] {
  const gapOf = (loop: Loop): number => findGap(loop, scan)?.ns ?? -1;
  const sorted = [...list(scan.loops)].sort((a, b) => gapOf(b) - gapOf(a));
  const groups = groupBy(sorted, (loop) => {
    const { function: name, kind, gap_hints, gaps, algorithms } = loop;
    const { binary, fails } = loop;
    return JSON.stringify([
      ...[name, kind, gap_hints, gaps, algorithms],
      ...[binary, fails],
    ]);
  });
  return [...groups.values()];
}

/** The number of loops that are drawn; the table has all. */
const MAX_DRAWN = 10;

/** The time between checks on each chip, of the loops that check least often; null if it is unknown. */
export function gapPlan(scan: SpinScan): ChartPlan | null {
  const gaps = filterMap(groupEqualLoops(scan), ([loop]) => {
    const worst = findGap(loop, scan);
    return worst ? { loop, worst } : null;
  }).slice(0, MAX_DRAWN);
  if (gaps.length === 0) return null;
  const limit = scan.max_blind_gap_ns;
  return {
    name: 'Time between two checks',
    summary:
      'A free lock may go unnoticed for as long; below 1 µs that is less than a wake-up costs.',
    panel: {
      height: 30 * gaps.length,
      x: {
        title: 'time between checks',
        type: 'log',
        label: (ns) => quantity(ns, 'ns'),
      },
      y: {
        title: 'Function',
        names: gaps.map(({ loop }) => loop.function ?? loop.address ?? ''),
        words: gaps.map(
          ({ worst }) => `${quantity(worst.ns, 'ns')} ${worst.chip}`,
        ),
      },
      rules: positive(limit) ? [{ x: limit, label: 'limit' }] : [],
      series: separateMarks(
        list(scan.chips).map((chip, at) => ({
          name: nameChip(chip.id ?? '', scan),
          ...seriesLook(at),
          size: 5,
          points: filterMap(gaps, ({ loop }, y) => {
            const x = loop.gaps?.find((one) => one.chip === chip.id)?.ns;
            return positive(x)
              ? { x, y, tooltip: `${chip.id}: ${quantity(x, 'ns')}` }
              : null;
          }),
        })),
      ),
    },
  };
}
