// A machine drawn small: its units as boxes within each other, the CPUs of a set filled.

import { formatCpus } from '../../cpus';
import { svg } from '../../dom';
import { type Box, type Sizes, layOut } from './layout';
import type { Machine } from './record';
import { buildUnits } from './shape';

/** Machines with more CPUs are not drawn. */
const MAX_CPUS = 1024;

const sizesOf = (cpus: number): Sizes => {
  const [width, height] =
    cpus <= 16
      ? [24, 18]
      : cpus <= 64
        ? [15, 12]
        : cpus <= 256
          ? [9, 8]
          : [6, 6];
  return { width, height, hasFigure: false };
};

/** A drawing of the machine with the CPUs of `used` filled, up to this width; null if it has too
 * many CPUs. */
export function smallMachine(
  machine: Machine,
  used: readonly number[],
  width: number,
): SVGElement | null {
  const { cpus } = machine;
  if (cpus.length === 0 || cpus.length > MAX_CPUS) return null;
  const plan = layOut(buildUnits(machine), width - 2, sizesOf(cpus.length));
  const filled = new Set(used);
  const size = [plan.width + 2, plan.height + 2] as const;
  return svg(
    'svg',
    {
      width: size[0],
      height: size[1],
      viewBox: `-1 -1 ${size.join(' ')}`,
      class: 'small-machine',
      role: 'img',
      'aria-label': `CPUs ${formatCpus(used)} of ${formatCpus(cpus.map((one) => one.cpu))}`,
    },
    ...plan.boxes.flatMap((one) => drawBoxes(one, 0, 0, filled)),
  );
}

function drawBoxes(
  box: Box,
  left: number,
  top: number,
  used: ReadonlySet<number>,
): SVGElement[] {
  const { unit, width, height, label } = box;
  const [x, y] = [left + box.x, top + box.y];
  const { cpu } = unit;
  const names = cpu
    ? `cpu ${used.has(cpu.cpu) ? 'used' : 'unused'}${cpu.allowed ? '' : ' disallowed'}`
    : `unit ${unit.kind}`;
  return [
    svg('rect', { x, y, width, height, rx: 2, class: names }),
    !cpu && label
      ? svg('text', { x: x + 5, y: y + 12, class: 'unit-name' }, label)
      : null,
    ...box.children.flatMap((child) => drawBoxes(child, x, y, used)),
  ].filter((one) => one !== null);
}
