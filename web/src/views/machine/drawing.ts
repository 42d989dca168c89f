// The machine drawn: units as boxes within each other, CPUs coloured by a figure, from both sides
// if report and measurement differ. One CPU takes the keyboard's focus, arrow keys go to its
// neighbours.

import { selectElement } from '../../controls';
import { fill, h, svg, visible } from '../../dom';
import { count, quantity } from '../../format';
import { onPrint } from '../../print';
import { type Captioned, picturesMenu } from '../../save';
import { type Table, tableElement, numberColumns } from '../../table';
import { onTheme, theme } from '../../theme';
import type { Part } from '../../view';
import type { Colouring } from './figures';
import {
  listChoices,
  buildColouring,
  describeCpu,
  chooseFirst,
  stateOf,
} from './figures';
import { layOut, chooseSizes } from './layout';
import { colouringLegend } from './legend';
import { type Spot, drawBox, hatchPattern, paintCpu } from './picture';
import type { Cpu, Machine } from './record';
import { describeCaches, findDoubtfulSizes } from './shape';
import type { Side } from './sides';
import {
  contradictedLevels,
  describeDifference,
  differsOn,
  buildUnitsOfSide,
} from './sides';

/** The drawing, which can mark CPUs that are pointed at elsewhere. */
export interface Drawing extends Part {
  mark(cpus: readonly number[]): void;
}

/** The drawing with its selects, legend and the line that describes a CPU; `onPoint` receives the
 * CPU that is pointed at or has the focus. */
export function machineDrawing(
  machine: Machine,
  onPoint: (cpu: number | null) => void,
): Drawing {
  const first = machine.measured?.cpus[0] ?? machine.cpus[0]?.cpu ?? 0;
  const hasSides = contradictedLevels(machine).length > 0;
  const state: State = {
    key: chooseFirst(machine),
    chosen: first,
    sides: hasSides ? ['reported', 'measured'] : ['reported'],
    focus: 0,
  };
  const stage = h('div.drawing');
  const legend = h('div');
  // Not live: the CPU that takes the focus is announced by its own name.
  const status = h('p.status-line');
  const figures = h('details.figures', h('summary', 'The figures'));
  let spots: Spot[] = [];
  let current = buildColouring(machine, state.key, state.chosen);

  const mark = (cpus: readonly number[]): void => {
    for (const spot of spots)
      spot.element.classList.toggle('linked', cpus.includes(spot.cpu.cpu));
  };
  const announce = (cpu: Cpu): void => {
    fill(status, `${describeCpu(machine, cpu)}: ${current.words(cpu)}`);
    mark([cpu.cpu]);
    onPoint(cpu.cpu);
  };
  const leave = (): void => {
    mark([]);
    onPoint(null);
  };
  const paint = (): void => {
    current = buildColouring(machine, state.key, state.chosen);
    for (const spot of spots)
      paintCpu(
        spot,
        current,
        state.chosen,
        `${describeCpu(machine, spot.cpu)}: ${current.words(spot.cpu)}`,
      );
    fill(legend, colouringLegend(current, theme()));
    if (figures.open) fillFigures();
  };
  const fillFigures = (): void =>
    figures.replaceChildren(
      figures.firstElementChild!,
      tableElement(cpuTable(machine, current)),
    );
  const focus = (spot: Spot | undefined): void => {
    if (!spot) return;
    spots[state.focus]?.element.setAttribute('tabindex', '-1');
    state.focus = spots.indexOf(spot);
    spot.element.setAttribute('tabindex', '0');
    spot.element.focus();
  };
  const draw = (): void => {
    spots = [];
    stage.replaceChildren(
      ...state.sides.map((side) => sideDrawing(machine, side, stage, spots)),
    );
    state.focus = Math.min(state.focus, Math.max(0, spots.length - 1));
    spots.forEach((spot, at) => {
      const { element, cpu } = spot;
      element.setAttribute('tabindex', at === state.focus ? '0' : '-1');
      element.addEventListener('pointerenter', () => announce(cpu));
      element.addEventListener('focus', () => announce(cpu));
      element.addEventListener('click', () => {
        controls.choose(cpu.cpu);
        focus(spot);
        announce(cpu);
      });
    });
    paint();
  };
  const controls = colourControls(machine, state, paint);
  stage.addEventListener('keydown', (event) =>
    handleKey(event, spots, state.focus, focus, (cpu) => {
      controls.choose(cpu.cpu);
      announce(cpu);
    }),
  );
  stage.addEventListener('pointerleave', leave);
  stage.addEventListener('focusout', leave);
  figures.addEventListener('toggle', () => {
    if (figures.open) fillFigures();
  });
  const stops = [watchWidth(stage, draw), onTheme(paint), onPrint(draw)];
  if (hasSides) controls.element.append(sideControl(state, draw));
  const element = h(
    'div',
    controls.element,
    legend,
    stage,
    status,
    ...explanations(machine),
    figures,
    picturesMenu('The machine', () => [
      ...[...legend.querySelectorAll<SVGElement>('svg.ramp')].map(
        (ramp): Captioned => [describeScale(current), ramp],
      ),
      ...[...stage.querySelectorAll<SVGElement>('.side > svg')].map(
        (side): Captioned => [
          side.getAttribute('aria-label')!.split(';')[0]!,
          side,
        ],
      ),
    ]),
  );
  return {
    element,
    mark,
    dispose: () => stops.forEach((stop) => stop()),
  };
}

/** The ends of a scale in words; empty for classes. */
const describeScale = (colouring: Colouring): string =>
  colouring.kind === 'scale'
    ? `From ${quantity(colouring.low, colouring.unit)} to ${quantity(colouring.high, colouring.unit)}:`
    : '';

/** What the drawing's marks mean, and what it leaves out. */
function explanations(machine: Machine): HTMLElement[] {
  const caches = describeCaches(machine);
  return [
    describeDifference(machine),
    ...findDoubtfulSizes(machine).values(),
    'Dashed frames are NUMA nodes. CPUs are dotted if this process may not use them, dashed if offline. Arrow keys go from CPU to CPU, Enter chooses one.',
    caches.length > 0 ? `Caches: ${visible(caches.join(', '))}.` : '',
  ]
    .filter(Boolean)
    .map((words) => h('p.muted', words));
}

/** Calls back when an element's width changes, until the returned function is called. */
function watchWidth(element: HTMLElement, act: () => void): () => void {
  let width = -1;
  const size = new ResizeObserver(() => {
    if (element.clientWidth === width) return;
    width = element.clientWidth;
    act();
  });
  size.observe(element);
  return () => size.disconnect();
}

const SIDE_WORDS: Readonly<Record<Side, string>> = {
  reported: 'as reported',
  measured: 'as measured',
};

/** One side of the machine; its CPUs are added to `spots`. */
function sideDrawing(
  machine: Machine,
  side: Side,
  stage: HTMLElement,
  spots: Spot[],
): HTMLElement {
  const hasSides = contradictedLevels(machine).length > 0;
  const sizes = chooseSizes(machine.cpus.length);
  const room = Math.max(180, stage.clientWidth || 900);
  const plan = layOut(buildUnitsOfSide(machine, side), room, sizes);
  const words = hasSides ? ` ${SIDE_WORDS[side]}` : '';
  const drawn = svg('svg', {
    width: plan.width + 2,
    height: plan.height + 2,
    viewBox: `-1 -1 ${plan.width + 2} ${plan.height + 2}`,
    role: 'group',
    'aria-label': `The machine${words}, ${count(machine.cpus.length, 'CPU')}; arrow keys go from CPU to CPU`,
  });
  const differs = hasSides ? differsOn(machine, side) : () => false;
  if (hasSides) drawn.append(hatchPattern());
  for (const box of plan.boxes)
    drawBox(drawn, box, 0, 0, sizes, spots, differs);
  return h(
    'div.side',
    hasSides && h('h3', `${words.trim().replace(/^a/, 'A')}`),
    drawn,
  );
}

/** Which sides are drawn. */
function sideControl(state: State, draw: () => void): HTMLElement {
  const select = selectElement(
    [
      ['reported measured', 'as reported and as measured'],
      ['reported', SIDE_WORDS.reported],
      ['measured', SIDE_WORDS.measured],
    ],
    (value) => {
      state.sides = value.split(' ') as Side[];
      draw();
    },
    { name: 'units' },
  );
  return h('label', 'Units ', select);
}

interface State {
  key: string;
  chosen: number;
  sides: Side[];
  /** Place of the CPU that takes the focus, of all sides. */
  focus: number;
}

/** The selects that say what the drawing is coloured by. */
function colourControls(
  machine: Machine,
  state: State,
  paint: () => void,
): { element: HTMLElement; choose(cpu: number): void } {
  const choices = listChoices(machine);
  const figure = selectElement(
    choices.map(({ key, name }) => [key, name]),
    (key) => {
      state.key = key;
      show();
    },
    { name: 'colour', value: state.key },
  );
  const cpus = machine.measured?.cpus ?? [];
  const cpu = selectElement(
    cpus.map((number) => [`${number}`, `CPU ${number}`]),
    (value) => {
      state.chosen = Number(value);
      show();
    },
    { name: 'cpu' },
  );
  const label = h('label', 'Chosen CPU ', cpu);
  const show = (): void => {
    label.hidden = !choices.find((choice) => choice.key === state.key)?.relates;
    cpu.value = `${state.chosen}`;
    paint();
  };
  label.hidden = !choices.find((choice) => choice.key === state.key)?.relates;
  return {
    element: h('div.controls', h('label', 'Colour by ', figure), label),
    choose: (number) => {
      if (label.hidden || !cpus.includes(number)) return;
      state.chosen = number;
      show();
    },
  };
}

function handleKey(
  event: KeyboardEvent,
  spots: readonly Spot[],
  focused: number,
  focus: (spot: Spot | undefined) => void,
  choose: (cpu: Cpu) => void,
): void {
  const at = focused;
  const here = spots[at];
  if (!here) return;
  const goals: Readonly<Record<string, () => Spot | undefined>> = {
    ArrowRight: () => spots[at + 1],
    ArrowLeft: () => spots[at - 1],
    ArrowDown: () => findNearest(spots, here, 1),
    ArrowUp: () => findNearest(spots, here, -1),
    Home: () => spots[0],
    End: () => spots[spots.length - 1],
  };
  const goal = goals[event.key];
  if (goal) focus(goal());
  else if (event.key === 'Enter' || event.key === ' ') choose(here.cpu);
  else return;
  event.preventDefault();
}

/** The nearest CPU below (1) or above (−1); distance to the side counts double. */
function findNearest(
  spots: readonly Spot[],
  from: Spot,
  direction: 1 | -1,
): Spot | undefined {
  const own = from.element.ownerSVGElement;
  const ahead = spots.filter(
    (spot) =>
      spot.element.ownerSVGElement === own && (spot.y - from.y) * direction > 2,
  );
  const rows = ahead.map(
    (spot) => Math.abs(spot.y - from.y) + 2 * Math.abs(spot.x - from.x),
  );
  return ahead[rows.indexOf(Math.min(...rows))];
}

/** Every CPU in words. */
function cpuTable(machine: Machine, colouring: Colouring): Table {
  return {
    caption: 'CPUs, their units and the figure that they are coloured by',
    columns: [
      ...numberColumns('CPU', 'Core', 'LLC', 'Node', 'Package'),
      'State',
      'Figure',
    ],
    rows: machine.cpus.map((cpu) => [
      cpu.cpu,
      cpu.core,
      cpu.llc,
      cpu.node,
      cpu.package,
      stateOf(cpu),
      colouring.words(cpu),
    ]),
  };
}
