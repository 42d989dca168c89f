// CPUs as a strip of boxes, those of a set filled.

import { svg } from './dom';
import { formatCpus, parseCpus } from './cpus';

const BOX = 9;
const STEP = 11;
const PER_ROW = 32;
/** Beyond this only the list is shown. */
const MAX_CPUS = 256;

/** The place of each CPU in the drawing, by number: numbers that the machine lacks stay empty, so
 * that neighbours in it are neighbours in number. */
export function placeCpus(
  allowed: string,
): { cpu: number; column: number; row: number }[] {
  const all = [...new Set(parseCpus(allowed))].sort((a, b) => a - b);
  return all.map((cpu) => ({
    cpu,
    column: (cpu - all[0]!) % PER_ROW,
    row: Math.floor((cpu - all[0]!) / PER_ROW),
  }));
}

/** The CPUs of `cpus` among `allowed`, drawn by number; null if there are too many to draw. */
export function cpuStrip(cpus: string, allowed: string): SVGElement | null {
  const used = new Set(parseCpus(cpus));
  const all = placeCpus(allowed);
  const rows = (all.at(-1)?.row ?? -1) + 1;
  if (rows === 0 || rows * PER_ROW > MAX_CPUS) return null;
  const width = (Math.max(...all.map(({ column }) => column)) + 1) * STEP;
  const height = rows * STEP;
  const boxes = all.map(({ cpu, column, row }) =>
    svg(
      'rect',
      {
        x: column * STEP + 0.5,
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
