// The machine drawn: units as boxes within each other, CPUs coloured by a
// figure. One CPU takes the keyboard's focus, arrow keys go to its neighbours.

import { fill, h, svg, visible } from '../../dom';
import { count } from '../../format';
import { colourAt, inkOn, shareOf } from '../../colour-scale';
import type { Table } from '../../table';
import { tableElement } from '../../table';
import { onTheme, theme } from '../../theme';
import type { Part } from '../../view';
import type { Colouring } from './figures';
import {
  choices,
  colouring,
  cpuWords,
  firstChoice,
  short,
  stateOf,
} from './figures';
import type { Box, Sizes } from './layout';
import { layout, sizesFor } from './layout';
import { classColour, legendOf } from './legend';
import type { Cpu, Machine } from './record';
import { cacheWords, unitsOf } from './shape';

interface Spot {
  cpu: Cpu;
  x: number;
  y: number;
  element: SVGElement;
  /** The CPU's number and its figure; beside the element, whose name says more than they. */
  number: SVGElement;
  figure: SVGElement | null;
}

/** The drawing with its select, legend and the line that tells of a CPU. */
export function drawing(machine: Machine): Part {
  const first = machine.measured?.cpus[0] ?? machine.cpus[0]?.cpu ?? 0;
  const state = {
    key: firstChoice(machine),
    chosen: first,
    focus: machine.cpus[0]?.cpu ?? 0,
  };
  const stage = h('div', { class: 'drawing' });
  const legend = h('div');
  // Not live: the CPU that takes the focus is told by its own name.
  const told = h('p', { class: 'told' });
  const figures = h(
    'details',
    { class: 'figures' },
    h('summary', {}, 'The figures'),
  );
  let spots: Spot[] = [];
  let now = colouring(machine, state.key, state.chosen);

  const tell = (cpu: Cpu): void => {
    told.textContent = visible(`${cpuWords(machine, cpu)}: ${now.words(cpu)}`);
  };
  const paint = (): void => {
    now = colouring(machine, state.key, state.chosen);
    for (const spot of spots)
      paintCpu(
        spot,
        now,
        state.chosen,
        `${cpuWords(machine, spot.cpu)}: ${now.words(spot.cpu)}`,
      );
    fill(legend, legendOf(now, theme()));
    if (figures.open) fillFigures();
  };
  const fillFigures = (): void =>
    figures.replaceChildren(
      figures.firstElementChild!,
      tableElement(cpuTable(machine, now)),
    );
  const focus = (spot: Spot | undefined): void => {
    if (!spot) return;
    spots
      .find((s) => s.cpu.cpu === state.focus)
      ?.element.setAttribute('tabindex', '-1');
    state.focus = spot.cpu.cpu;
    spot.element.setAttribute('tabindex', '0');
    spot.element.focus();
  };
  const controls = colourControls(machine, state, paint);
  const draw = (): void => {
    const sizes = sizesFor(machine.cpus.length);
    const plan = layout(
      unitsOf(machine),
      Math.max(180, stage.clientWidth || 900),
      sizes,
    );
    spots = [];
    const picture = svg('svg', {
      width: plan.width + 2,
      height: plan.height + 2,
      viewBox: `-1 -1 ${plan.width + 2} ${plan.height + 2}`,
      role: 'group',
      'aria-label': `The machine, ${count(machine.cpus.length, 'CPU')}; arrow keys go from CPU to CPU`,
    });
    for (const box of plan.boxes) drawBox(picture, box, 0, 0, sizes, spots);
    for (const spot of spots) {
      spot.element.setAttribute(
        'tabindex',
        spot.cpu.cpu === state.focus ? '0' : '-1',
      );
      spot.element.addEventListener('pointerenter', () => tell(spot.cpu));
      spot.element.addEventListener('focus', () => tell(spot.cpu));
      spot.element.addEventListener('click', () => {
        controls.choose(spot.cpu.cpu);
        focus(spot);
        tell(spot.cpu);
      });
    }
    picture.addEventListener('keydown', (event) =>
      onKey(event, spots, state.focus, focus, (cpu) => {
        controls.choose(cpu.cpu);
        tell(cpu);
      }),
    );
    stage.replaceChildren(picture);
    paint();
  };
  figures.addEventListener('toggle', () => {
    if (figures.open) fillFigures();
  });
  let width = -1;
  const size = new ResizeObserver(() => {
    if (stage.clientWidth === width) return;
    width = stage.clientWidth;
    draw();
  });
  size.observe(stage);
  const stop = onTheme(paint);
  const caches = cacheWords(machine);
  const element = h(
    'div',
    {},
    controls.element,
    legend,
    stage,
    told,
    h(
      'p',
      { class: 'muted' },
      'Dotted boxes are CPUs that this process may not use, dashed ones are offline. Arrow keys go from CPU to CPU, Enter chooses one.',
    ),
    caches.length > 0
      ? h('p', { class: 'muted' }, `Caches: ${visible(caches.join(', '))}.`)
      : null,
    figures,
  );
  return {
    element,
    dispose: () => {
      stop();
      size.disconnect();
    },
  };
}

interface State {
  key: string;
  chosen: number;
}

/** The selects that say what the drawing is coloured by. */
function colourControls(
  machine: Machine,
  state: State,
  paint: () => void,
): { element: HTMLElement; choose(cpu: number): void } {
  const all = choices(machine);
  const figure = h(
    'select',
    {},
    ...all.map((choice) =>
      h(
        'option',
        { value: choice.key, selected: choice.key === state.key },
        choice.name,
      ),
    ),
  );
  const cpus = machine.measured?.cpus ?? [];
  const cpu = h(
    'select',
    {},
    ...cpus.map((number) =>
      h('option', { value: `${number}` }, `CPU ${number}`),
    ),
  );
  const label = h('label', {}, 'Chosen CPU ', cpu);
  const show = (): void => {
    label.hidden = !all.find((choice) => choice.key === state.key)?.relates;
    cpu.value = `${state.chosen}`;
    paint();
  };
  figure.addEventListener('change', () => {
    state.key = figure.value;
    show();
  });
  cpu.addEventListener('change', () => {
    state.chosen = Number(cpu.value);
    show();
  });
  label.hidden = !all.find((choice) => choice.key === state.key)?.relates;
  return {
    element: h(
      'div',
      { class: 'controls' },
      h('label', {}, 'Colour by ', figure),
      label,
    ),
    choose: (number) => {
      if (label.hidden || !cpus.includes(number)) return;
      state.chosen = number;
      show();
    },
  };
}

function drawBox(
  parent: SVGElement,
  box: Box,
  left: number,
  top: number,
  sizes: Sizes,
  spots: Spot[],
): void {
  const x = left + box.x;
  const y = top + box.y;
  const cpu = box.unit.cpu;
  if (cpu) {
    const names = cpu.online
      ? cpu.allowed
        ? 'cpu'
        : 'cpu disallowed'
      : 'cpu offline';
    const middle = x + box.width / 2;
    const line = (offset: number, font: number, text: string): SVGElement =>
      svg(
        'text',
        {
          x: middle,
          y: y + offset,
          'text-anchor': 'middle',
          'font-size': font,
          class: 'cpu-text',
          'aria-hidden': 'true',
        },
        text,
      );
    const element = svg(
      'g',
      { class: names, role: 'button', 'data-cpu': cpu.cpu },
      svg('rect', { x, y, width: box.width, height: box.height, rx: 3 }),
    );
    const number = line(
      box.height / 2 + (sizes.hasFigure ? -3 : 3.5),
      sizes.font,
      box.label,
    );
    const figure = sizes.hasFigure
      ? line(box.height - 5, sizes.font - 1.5, '')
      : null;
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
  if (box.label)
    parent.append(
      svg(
        'text',
        { x: x + 5, y: y + 13, 'font-size': 11, class: 'unit-name' },
        box.label,
      ),
    );
  for (const child of box.children) drawBox(parent, child, x, y, sizes, spots);
}

function paintCpu(
  { cpu, element, number, figure }: Spot,
  now: Colouring,
  chosen: number,
  words: string,
): void {
  const colours = theme();
  const value = now.kind === 'scale' ? now.values.get(cpu.cpu) : undefined;
  const group = now.kind === 'classes' ? now.of.get(cpu.cpu) : undefined;
  let colour: string | null = null;
  let told = '';
  if (now.kind === 'scale' && value !== undefined) {
    colour = colourAt(colours.scale, shareOf(value, now.low, now.high));
    told = short(value);
  }
  if (
    now.kind === 'classes' &&
    group !== undefined &&
    stateOf(cpu) !== 'offline'
  ) {
    colour = classColour(colours, group);
    told = (now.names[group] ?? '').length <= 3 ? now.names[group]! : '';
  }
  element
    .querySelector('rect')!
    .setAttribute('fill', colour ?? colours.surface);
  for (const text of [number, figure])
    text?.setAttribute('fill', colour ? inkOn(colour) : colours.muted);
  if (figure) figure.textContent = visible(told);
  element.setAttribute('aria-label', visible(words));
  element.classList.toggle(
    'chosen',
    now.kind === 'scale' && cpu.cpu === chosen && value === undefined,
  );
}

function onKey(
  event: KeyboardEvent,
  spots: readonly Spot[],
  focused: number,
  focus: (spot: Spot | undefined) => void,
  choose: (cpu: Cpu) => void,
): void {
  const at = spots.findIndex((spot) => spot.cpu.cpu === focused);
  const here = spots[at];
  if (!here) return;
  const goals: Readonly<Record<string, () => Spot | undefined>> = {
    ArrowRight: () => spots[at + 1],
    ArrowLeft: () => spots[at - 1],
    ArrowDown: () => nearest(spots, here, 1),
    ArrowUp: () => nearest(spots, here, -1),
    Home: () => spots[0],
    End: () => spots[spots.length - 1],
  };
  const goal = goals[event.key];
  if (goal) focus(goal());
  else if (event.key === 'Enter' || event.key === ' ') choose(here.cpu);
  else return;
  event.preventDefault();
}

/** The CPU in the next row below (1) or above (−1) that is least far to the side. */
function nearest(
  spots: readonly Spot[],
  from: Spot,
  direction: 1 | -1,
): Spot | undefined {
  const ahead = spots.filter((spot) => (spot.y - from.y) * direction > 2);
  const rows = ahead.map(
    (spot) => Math.abs(spot.y - from.y) + 2 * Math.abs(spot.x - from.x),
  );
  return ahead[rows.indexOf(Math.min(...rows))];
}

/** Every CPU in words. */
function cpuTable(machine: Machine, now: Colouring): Table {
  return {
    caption: 'CPUs, their units and the figure that they are coloured by',
    columns: [
      { name: 'CPU', isNumber: true },
      { name: 'Core', isNumber: true },
      { name: 'LLC', isNumber: true },
      { name: 'Node', isNumber: true },
      { name: 'Package', isNumber: true },
      { name: 'State' },
      { name: 'Figure' },
    ],
    rows: machine.cpus.map((cpu) => [
      cpu.cpu,
      cpu.core,
      cpu.llc,
      cpu.node,
      cpu.package,
      stateOf(cpu),
      now.words(cpu),
    ]),
  };
}
