// CPUs as a strip of boxes, those of a set filled, with gaps between cores and between caches.

import { svg } from './dom';
import { formatCpus, parseCpus } from './cpus';
import type { Maybe } from './records';

const BOX = 9;
const STEP = 11;
const PER_ROW = 32;
/** Room between cores and between last-level caches, beside that between CPUs. */
const CORE_GAP = 3;
const CACHE_GAP = 8;
/** Of more rows only the list is shown. */
const MAX_ROWS = 8;

/** CPUs that could be used, and how they are arranged. */
export interface CpuSpace {
  allowed?: Maybe<string>;
  /** A string for each last-level cache, with the CPUs of each of its cores. */
  layout?: Maybe<readonly string[]>;
}

/** The place of each CPU in the drawing: by cache and core where these are known, else by number.
 * Numbers that the machine lacks stay empty then, so that neighbours in it are neighbours in number. */
export function placeCpus({
  allowed,
  layout,
}: CpuSpace): { cpu: number; x: number; row: number }[] {
  const all = [...new Set(parseCpus(allowed))].sort((a, b) => a - b);
  const caches = (layout ?? []).map((cache) => cache.split(' ').map(parseCpus));
  const known = new Set(caches.flat(2));
  if (all.some((cpu) => !known.has(cpu)))
    return all.map((cpu) => ({
      cpu,
      x: ((cpu - all[0]!) % PER_ROW) * STEP,
      row: Math.floor((cpu - all[0]!) / PER_ROW),
    }));
  let [x, row] = [0, 0];
  return caches.flatMap((cores) => {
    const width = STEP * cores.flat().length + CORE_GAP * cores.length;
    const isFull = (needed: number): boolean =>
      x > 0 && x + needed > PER_ROW * (STEP + CORE_GAP);
    if (isFull(width)) [x, row] = [0, row + 1];
    const placed = cores.flatMap((core) => {
      if (isFull(STEP * core.length)) [x, row] = [0, row + 1];
      const boxes = core.map((cpu, at) => ({ cpu, x: x + at * STEP, row }));
      x += STEP * core.length + CORE_GAP;
      return boxes;
    });
    x += CACHE_GAP;
    return placed;
  });
}

/** The CPUs of `cpus` among those that could be used; null if there are too many to draw. */
export function cpuStrip(
  cpus: string,
  { allowed, layout }: CpuSpace = {},
): SVGElement | null {
  const used = new Set(parseCpus(cpus));
  const all = placeCpus({ allowed: allowed || cpus, layout });
  const rows = Math.max(-1, ...all.map(({ row }) => row)) + 1;
  if (rows === 0 || rows > MAX_ROWS) return null;
  const width = Math.max(...all.map(({ x }) => x)) + STEP;
  const height = rows * STEP;
  const boxes = all.map(({ cpu, x, row }) =>
    svg(
      'rect',
      {
        x: x + 0.5,
        y: row * STEP + 0.5,
        width: BOX,
        height: BOX,
        class: used.has(cpu) ? 'used' : 'unused',
      },
      svg('title', {}, `CPU ${cpu}`),
    ),
  );
  return svg(
    'svg',
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      class: 'cpu-strip',
      role: 'img',
      'aria-label': `CPUs ${formatCpus([...used])} of ${formatCpus(all.map(({ cpu }) => cpu))}`,
    },
    ...boxes,
  );
}
