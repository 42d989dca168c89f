// What a scan of binaries found: in a sentence, in groups of equal loops, and drawn.

import type { ChartPlan } from '../../chart';
import { list } from '../../fields';
import { count, quantity } from '../../format';
import { filterMap, groupBy } from '../../lists';
import { finite, positive } from '../../numbers';
import { seriesLook, separateMarks } from '../../plot';
import type { SpinScan } from '../../records';

type Loop = NonNullable<SpinScan['loops']>[number];

/** The longest time between two checks on this machine, else on any known chip. */
function findLongestGap(loop: Loop): { ns: number; chip: string } | null {
  const gaps = filterMap(list(loop.gaps), ({ ns, chip }) =>
    finite(ns) ? { ns, chip: chip ?? '' } : null,
  );
  return (
    gaps.find(({ chip }) => chip === HERE) ??
    gaps.sort((a, b) => b.ns - a.ns)[0] ??
    null
  );
}

/** The chip of the machine that scanned. */
const HERE = 'here';

/** "here (assumed, as zen-4)", "on zen-4". */
function nameChip({ chips }: SpinScan, id: string): string {
  if (id !== HERE) return `on ${id}`;
  const here = list(chips).find((chip) => chip.id === HERE);
  if (!here?.source?.startsWith('not measured')) return HERE;
  const like = list(chips).find(
    (chip) => chip !== here && chip.pause_ns === here.pause_ns,
  );
  return `${HERE} (assumed${like ? `, as ${like.id}` : ''})`;
}

const compareGaps = (a: Loop, b: Loop): number =>
  (findLongestGap(b)?.ns ?? -1) - (findLongestGap(a)?.ns ?? -1);

/** "12 loops with spin hints in 2 binaries. main checks least often: every 51.0 ns here." */
export function scanSentence(scan: SpinScan): string {
  const [loops, binaries] = [list(scan.loops), list(scan.binaries)];
  const where =
    binaries.length === 1
      ? (binaries[0]!.path ?? 'the binary')
      : count(binaries.length, 'binary', 'binaries');
  const [worst] = [...loops].sort(compareGaps);
  const gap = worst ? findLongestGap(worst) : null;
  const fails = loops.filter((loop) => loop.fails === true).length;
  const limit = quantity(scan.max_blind_gap_ns ?? 0, 'ns');
  return [
    `${count(loops.length, 'loop')} with spin hints in ${where}.`,
    gap
      ? `${worst!.function ?? worst!.address} checks ${loops.length > 1 ? 'least often: ' : ''}every ${quantity(gap.ns, 'ns')} ${nameChip(scan, gap.chip)}.`
      : '',
    scan.passed === true ? `All check within the limit of ${limit}.` : '',
    scan.passed === false
      ? `${count(fails, 'loop')} beyond the limit of ${limit}.`
      : '',
  ]
    .filter(Boolean)
    .join(' ');
}

/** Groups loops that differ only by their address; those that check least often come first. */
export function groupEqualLoops(scan: SpinScan): [Loop, ...Loop[]][] {
  const groups = groupBy([...list(scan.loops)].sort(compareGaps), (loop) => {
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
    const worst = findLongestGap(loop);
    return worst ? { loop, worst } : null;
  }).slice(0, MAX_DRAWN);
  if (gaps.length === 0) return null;
  const limit = scan.max_blind_gap_ns;
  return {
    name: 'Time between two checks',
    summary:
      'The longest, on each known chip: a free lock may go unnoticed for so long.',
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
          name: chip.id ?? '',
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
