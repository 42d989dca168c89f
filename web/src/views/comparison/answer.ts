// The first screen of a comparison beside its drawing: which arms to use and to avoid, and the CPUs
// of the chosen arm.

import './answer.css';

import { formatCpus, nameCpus, parseCpus } from '../../cpus';
import { fill, h } from '../../dom';
import { count } from '../../format';
import type { Growing } from '../../keep';
import type { Comparison } from '../../records';
import type { AnyRecord } from '../../source';
import { type CpuSpace, cpuStrip } from '../../strip';
import type { Page } from '../../view';
import { findTopology } from '../machine/stored-topology';
import { type Machine, readMachine } from '../machine/record';
import { smallMachine } from '../machine/small';
import { describeEffect } from './disagreement';
import { figureText } from './ratios';
import type { ArmLine } from './shape';
import { adviceGroups } from './advice';
import { filterMap } from '../../lists';

/** Maximum number of arms in a line; the drawing below has all. */
const MAX_NAMED = 8;
/** Width of the small machine, pixels. */
const WIDTH = 288;

/** Arms grouped by advice; a click shows an arm's CPUs. */
export function adviceList(
  record: Comparison,
  lines: readonly ArmLine[],
  choose: (name: string) => void,
): HTMLElement | null {
  const groups = adviceGroups(record, lines);
  if (groups.length === 0 || lines.length < 2) return null;
  return h(
    'dl.advised',
    ...groups.flatMap(({ word, standing, arms }) => [
      h('dt', { class: standing }, word),
      h(
        'dd',
        ...arms.slice(0, MAX_NAMED).map((line) => armButton(line, choose)),
        arms.length > MAX_NAMED && `and ${arms.length - MAX_NAMED} more`,
      ),
    ]),
  );
}

function armButton(line: ArmLine, choose: (name: string) => void): HTMLElement {
  const { name, contrast, standing } = line;
  return h(
    'button.arm',
    {
      title: `Show where ${name} runs`,
      data: { arm: name },
      onclick: () => choose(name),
    },
    h('span.arm-name', name),
    contrast &&
      h(
        'span.muted.number',
        ` ${figureText({ standing, ...describeEffect(contrast.effect) })}`,
      ),
  );
}

interface Shown {
  record: Comparison;
  lines: readonly ArmLine[];
}

/** The chosen arm's CPUs, drawn on the machine if its topology is available, else by number. */
export function armPlacePart(
  page: Page,
): Growing<Shown> & { choose(name: string): void } {
  const element = h('div.where');
  let machine: Machine | null = null;
  let isTopologyRequested = false;
  let shown: Shown | null = null;
  let chosen = page.place?.params.get('arm') ?? null;
  const draw = (): void => {
    if (!shown) return;
    const { record, lines } = shown;
    const first = adviceGroups(record, lines)[0]?.arms[0]?.name;
    const line =
      lines.find((one) => one.name === chosen) ??
      lines.find((one) => one.name === first);
    element.hidden = !line?.arm.cpus || line.standing === 'invalid';
    if (!line?.arm.cpus) return;
    fill(element, ...placeNodes(line, record.host ?? {}, machine));
    for (const button of element.parentElement?.querySelectorAll<HTMLElement>(
      'button.arm',
    ) ?? [])
      button.setAttribute(
        'aria-pressed',
        String(button.dataset['arm'] === line.name),
      );
  };
  return {
    element,
    show(now) {
      shown = now;
      draw();
      if (isTopologyRequested) return;
      isTopologyRequested = true;
      void findTopology(now.record.host, page.source).then(
        (found) => {
          if (!found) return;
          machine = readMachine(found as unknown as AnyRecord);
          draw();
        },
        () => undefined,
      );
    },
    choose(name) {
      chosen = name;
      draw();
      keepArmInAddress(page, name);
      const cpus = shown?.lines.find((one) => one.name === name)?.arm.cpus;
      page.announce(cpus ? `${name} runs on CPUs ${cpus}` : name);
    },
  };
}

/** Keeps the chosen arm in the address. */
function keepArmInAddress({ place }: Page, arm: string): void {
  const params = new URLSearchParams(place?.params);
  params.set('arm', arm);
  place?.keep('', params);
}

function placeNodes(
  line: ArmLine,
  space: CpuSpace,
  machine: Machine | null,
): (Node | null)[] {
  const { arm, name } = line;
  const used = parseCpus(arm.cpus);
  const { placement } = arm;
  const units = [
    [placement?.cores, 'core'],
    [placement?.llcs, 'LLC'],
    [placement?.numa_nodes, 'NUMA node'],
    [placement?.packages, 'package'],
  ] as const;
  const words = filterMap(units, ([number, unit]) =>
    number ? count(number, unit) : null,
  ).join(', ');
  return [
    h(
      'p',
      h('strong', name),
      used.length > 0 && ` on ${nameCpus(formatCpus(used))}`,
    ),
    (machine && smallMachine(machine, used, WIDTH)) ??
      cpuStrip(arm.cpus ?? '', space),
    words ? h('p.muted', words) : null,
  ];
}
