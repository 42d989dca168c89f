// CPUs as a strip of boxes, those of a set filled.

import { svg } from './dom';
import { formatCpus, parseCpus } from './cpus';

const BOX = 9;
const STEP = 11;
const PER_ROW = 32;
/** Beyond this only the list is shown. */
const MAX_CPUS = 256;

/** The CPUs of `cpus` among `allowed`, drawn by number; null if there are too many to draw. */
export function cpuStrip(cpus: string, allowed: string): SVGElement | null {
  const used = new Set(parseCpus(cpus));
  const all = parseCpus(allowed);
  if (all.length === 0 || all.length > MAX_CPUS) return null;
  const width = Math.min(all.length, PER_ROW) * STEP;
  const height = Math.ceil(all.length / PER_ROW) * STEP;
  const boxes = all.map((cpu, at) =>
    svg('rect', {
      x: (at % PER_ROW) * STEP + 0.5,
      y: Math.floor(at / PER_ROW) * STEP + 0.5,
      width: BOX,
      height: BOX,
      class: used.has(cpu) ? 'used' : 'unused',
    }),
  );
  return svg(
    'svg',
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      class: 'cpu-strip',
      role: 'img',
      'aria-label': `CPUs ${formatCpus([...used])} of ${formatCpus(all)}`,
    },
    ...boxes,
  );
}
