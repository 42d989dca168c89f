// Boxes of the drawing as SVG, and their colours.

import { colourAt, inkOn, ratioPosition } from '../../colour-scale';
import { svg, visible } from '../../dom';
import { theme } from '../../theme';
import { type Colouring, shortFigure, stateOf } from './figures';
import { type Box, type Sizes, FONT_PX } from './layout';
import { classColour } from './legend';
import type { Cpu } from './record';
import type { Unit } from './shape';

/** A CPU's place in the drawing. */
export interface Spot {
  cpu: Cpu;
  x: number;
  y: number;
  element: SVGElement;
  /** Texts of the CPU's number and figure, hidden from screen readers: the element's name says
   * more. */
  number: SVGElement;
  figure: SVGElement | null;
}

/** The id of the pattern that marks units that only one side has. */
const HATCH_ID = 'differing-units';

export const hatchPattern = (): SVGElement =>
  svg(
    'defs',
    {},
    svg(
      'pattern',
      {
        id: HATCH_ID,
        width: 7,
        height: 7,
        patternUnits: 'userSpaceOnUse',
        patternTransform: 'rotate(45)',
      },
      svg('rect', { width: 2, height: 7, class: 'hatch' }),
    ),
  );

/** Draws a box with its contents; adds its CPUs to `spots`. */
export function drawBox(
  parent: SVGElement,
  box: Box,
  left: number,
  top: number,
  sizes: Sizes,
  spots: Spot[],
  differs: (unit: Unit) => boolean,
): void {
  const x = left + box.x;
  const y = top + box.y;
  const cpu = box.unit.cpu;
  if (cpu) {
    const classNames = cpu.online
      ? cpu.allowed
        ? 'cpu'
        : 'cpu disallowed'
      : 'cpu offline';
    const middle = x + box.width / 2;
    const line = (offset: number, text: string): SVGElement =>
      svg(
        'text',
        {
          x: middle,
          y: y + offset,
          'text-anchor': 'middle',
          'font-size': FONT_PX,
          class: 'cpu-text',
          'aria-hidden': 'true',
        },
        text,
      );
    const element = svg(
      'g',
      { class: classNames, role: 'button', 'data-cpu': cpu.cpu },
      svg('rect', { x, y, width: box.width, height: box.height, rx: 3 }),
    );
    const number = line(
      box.height / 2 + (sizes.hasFigure ? -3 : 4.5),
      box.label,
    );
    const figure = sizes.hasFigure ? line(box.height - 4, '') : null;
    parent.append(element, number, ...(figure ? [figure] : []));
    spots.push({
      cpu,
      x: middle,
      y: y + box.height / 2,
      element,
      number,
      figure,
    });
    return;
  }
  parent.append(
    svg('rect', {
      x,
      y,
      width: box.width,
      height: box.height,
      rx: 4,
      class: `unit ${box.unit.kind}`,
    }),
  );
  if (differs(box.unit))
    parent.append(
      svg('rect', {
        x,
        y,
        width: box.width,
        height: box.height,
        rx: 4,
        fill: `url(#${HATCH_ID})`,
        class: 'differs',
      }),
    );
  if (box.label)
    parent.append(
      svg(
        'text',
        { x: x + 5, y: y + 13, 'font-size': FONT_PX, class: 'unit-name' },
        box.label,
      ),
    );
  for (const child of box.children)
    drawBox(parent, child, x, y, sizes, spots, differs);
}

/** Colours a CPU and sets its accessible name. */
export function paintCpu(
  { cpu, element, number, figure }: Spot,
  now: Colouring,
  chosen: number,
  words: string,
): void {
  const colours = theme();
  const value = now.kind === 'scale' ? now.values.get(cpu.cpu) : undefined;
  const group = now.kind === 'classes' ? now.classOf.get(cpu.cpu) : undefined;
  let colour: string | null = null;
  let shown = '';
  if (now.kind === 'scale' && value !== undefined) {
    colour = colourAt(colours.scale, ratioPosition(value, now.low, now.high));
    shown = shortFigure(value);
  }
  if (
    now.kind === 'classes' &&
    group !== undefined &&
    stateOf(cpu) !== 'offline'
  ) {
    colour = classColour(colours, group);
    shown = (now.names[group] ?? '').length <= 3 ? now.names[group]! : '';
  }
  element
    .querySelector('rect')!
    .setAttribute('fill', colour ?? colours.surface);
  for (const text of [number, figure])
    text?.setAttribute('fill', colour ? inkOn(colour) : colours.muted);
  if (figure) figure.textContent = visible(shown);
  element.setAttribute('aria-label', visible(words));
  element.classList.toggle(
    'chosen',
    now.kind === 'scale' && cpu.cpu === chosen && value === undefined,
  );
}
