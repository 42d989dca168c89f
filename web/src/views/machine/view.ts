// A machine: drawn, and if measured, compared with the system's report.

import './machine.css';

import { chart } from '../../chart';
import { selectElement } from '../../controls';
import { type Absent, h } from '../../dom';
import {
  count,
  digits,
  percent,
  quantity,
  seconds,
  wholeNumber,
} from '../../format';
import { texts } from '../../fields';
import { adviceLine, splitVerdict } from '../../method';
import type { AnyRecord } from '../../source';
import { type Table, tableElement, numberColumns } from '../../table';
import { type Part, type View, stack } from '../../view';
import { type Facts, facts, hostFacts, section } from '../../words';
import {
  bandwidthPlan,
  driftPlan,
  ladderPlan,
  loadedPlan,
  formatMeasure,
} from './charts';
import { machineDrawing } from './drawing';
import { heatmap } from './heatmap';
import type { Machine, Measure, Measured, Verdict } from './record';
import { readMachine } from './record';
import {
  comparedLevels,
  describeGroups,
  memoryRows,
  verdictSentence,
} from './shape';
import { mapNumber } from '../../numbers';

/** The view of a "pinwise.topology" record. */
export function machineView(record: AnyRecord): View {
  const machine = readMachine(record);
  const measured = machine.measured;
  const [answer, more] = splitVerdict(verdictSentence(machine));
  return stack('article', '', [
    h('p.verdict', answer),
    adviceLine(adviceText(machine)),
    more && h('p', more),
    h('p.muted', describeHost(machine)),
    sectionOf('The machine', ...linkedViews(machine)),
    contradictionSection(machine),
    measured && groupsTable(machine),
    measured &&
      sectionOf(
        'Caches',
        measured.ladder && chart(ladderPlan(measured.ladder)),
      ),
    measured &&
      sectionOf(
        'Memory',
        measured.bandwidth.length > 0 &&
          chart(bandwidthPlan(measured.bandwidth)),
        measured.loaded.length > 0 && chart(loadedPlan(measured.loaded)),
      ),
    measured && driftSection(measured),
    measured && costSection(measured),
    memorySection(machine),
    deviceSection(machine),
    aboutSection(machine),
    measured && effortSection(measured, machine.started),
  ]);
}

/** The processor; in a virtual machine the system reports what the hypervisor claims. */
const describeHost = ({ host }: Machine): string =>
  [
    host.cpu_model,
    host.hypervisor &&
      `virtual machine (${host.hypervisor}): topology as the hypervisor claims it`,
  ]
    .filter(Boolean)
    .join(' · ');

/** What to do next, as in the terminal. */
const adviceText = ({ contradictions, host, measured }: Machine): string =>
  contradictions[0]?.advice ??
  (!measured
    ? 'Nothing was measured; check it: pinwise topology --measure'
    : host.hypervisor && !measured.drift
      ? 'The CPUs of a virtual machine may move; follow them: pinwise topology --measure --watch 3m'
      : 'See what placement is worth here: pinwise compare -- PROGRAM');

/** The drawing beside the latency matrix: a CPU that is pointed at in one is marked in the other. */
function linkedViews(machine: Machine): (Part | HTMLElement | null)[] {
  if (machine.cpus.length === 0)
    return [h('p', 'The record names no CPUs.'), heatmap(machine, () => {})];
  const drawn = machineDrawing(machine, (cpu) => matrix?.mark(cpu));
  const matrix = heatmap(machine, (cpus) => drawn.mark(cpus));
  return [stack('div', matrix ? 'linked-views' : '', [drawn, matrix])];
}

/** A section of parts; null if it has none. */
function sectionOf(
  title: string,
  ...parts: (Part | HTMLElement | Absent)[]
): Part | null {
  if (!parts.some(Boolean)) return null;
  const body = stack('div', '', parts);
  return { element: section(title, body.element), dispose: body.dispose };
}

function contradictionSection(machine: Machine): HTMLElement | null {
  if (machine.contradictions.length === 0) return null;
  return section(
    'What is misreported',
    h('ul.findings', ...machine.contradictions.map(contradictionItem)),
  );
}

function contradictionItem(found: Verdict): HTMLElement {
  return h(
    'li.problem',
    h(
      'span.severity',
      `${found.level} contradicted${mapNumber(found.confidence, (sure) => `, confidence ${percent(sure, 1)}`) ?? ''}`,
    ),
    h('p', h('strong', 'Reported: '), found.claim),
    h('p', h('strong', 'Measured: '), found.measured),
    found.advice && h('p', h('strong', 'What to do: '), found.advice),
  );
}

const VERDICTS: Readonly<Record<string, string>> = {
  agrees: '✓ agrees',
  contradicted: '✗ contradicted',
  cannot_tell: '? inconclusive',
};

/** Reported and measured groups, and the evidence for each verdict. */
function groupsTable(machine: Machine): HTMLElement | null {
  const levels = comparedLevels(machine);
  const measured = machine.measured!;
  // The table already shows levels that agree; contradictions have their own section.
  const other = measured.verdicts.filter(
    (v) =>
      v.claim &&
      (v.verdict === 'agrees'
        ? levels.length === 0
        : v.verdict !== 'contradicted'),
  );
  if (levels.length === 0 && other.length === 0) return null;
  const table: Table = {
    caption: 'Groups of allowed CPUs, level by level',
    columns: [
      'CPUs that share a',
      'as reported',
      'as measured',
      'Verdict',
      ...numberColumns('Confidence', 'Within', 'To the nearest other'),
    ],
    rows: levels.map((row) => [
      row.unit,
      describeGroups(row.reported),
      row.measured ? describeGroups(row.measured.groups) : 'not separated',
      VERDICTS[row.verdict] ?? row.verdict,
      row.confidence === null ? null : percent(row.confidence),
      row.measured ? quantity(row.measured.insideNs, 'ns') : null,
      row.measured ? quantity(row.measured.outsideNs, 'ns') : null,
    ]),
  };
  const claims = other.map((v) =>
    h(
      'li',
      h(
        'span.severity',
        `${v.level}: ${VERDICTS[v.verdict ?? ''] ?? v.verdict}`,
      ),
      h('p', v.claim),
      h('p.muted', [v.measured, v.advice].filter(Boolean).join(' ')),
    ),
  );
  return section(
    'Reported against measured',
    levels.length > 0 && tableElement(table),
    claims.length > 0 && h('ul.findings', ...claims),
  );
}

function driftSection(measured: Measured): Part | null {
  const { drift } = measured;
  if (!drift) return null;
  const pairs = drift.pairs
    .filter((pair) => pair.samples.length > 0)
    .sort((a, b) => b.states.length - a.states.length || a.a - b.a);
  const sentence = h('p', drift.sentence);
  const first = pairs[0];
  if (!first) return sectionOf('Over time', sentence);
  const drawn = chart(driftPlan(first));
  const select = selectElement(
    pairs.map((pair, at) => [
      `${at}`,
      `CPUs ${pair.a} and ${pair.b} (${count(pair.states.length, 'state')})`,
    ]),
    (value) => drawn.redraw(driftPlan(pairs[Number(value)] ?? first)),
  );
  return sectionOf(
    'Over time',
    sentence,
    h('div.controls', h('label', 'Pair ', select)),
    drawn,
  );
}

const formatMaybe = (measure: Measure | null, unit: string): string | null =>
  measure && formatMeasure(measure, unit);

const formatFigure = (value: unknown, unit: string): string | null =>
  mapNumber(value, (known) => `${digits(known)} ${unit}`);

function costSection(measured: Measured): HTMLElement | null {
  const pause: Table = {
    caption: 'Cost of the spin-wait hint',
    columns: [...numberColumns('CPU', 'Time', 'Cycles'), 'Odd'],
    rows: measured.pause.map((p) => [
      p.cpu,
      formatMaybe(p.ns, 'ns'),
      p.cycles ? digits(p.cycles.value) : null,
      p.modes || null,
    ]),
  };
  const pairs: Facts = {
    'Switch of threads on one CPU': formatMaybe(
      measured.scheduling.contextSwitch,
      'ns',
    ),
    'Wake-up on another CPU': formatMaybe(measured.scheduling.futexWake, 'ns'),
    'Core clock': formatFigure(measured.clock.core_ghz, 'GHz'),
    'Time-stamp counter': formatFigure(measured.clock.tick_ghz, 'GHz'),
    'Step of the clock': formatFigure(measured.clock.step_ns, 'ns'),
  };
  const hint =
    measured.pause.length > 0
      ? h(
          'details.figures',
          h('summary', `Spin-wait hint: ${describePause(measured)}`),
          tableElement(pause),
        )
      : null;
  if (!hint && Object.values(pairs).every((value) => value === null))
    return null;
  return section('Scheduler and clock', facts(pairs), hint);
}

function describePause(measured: Measured): string {
  const values = measured.pause.map((p) => p.ns.value).sort((a, b) => a - b);
  const middle = quantity(values[Math.floor(values.length / 2)], 'ns');
  return `${middle} in the middle of ${count(values.length, 'CPU')}, from ${quantity(values[0], 'ns')} to ${quantity(values[values.length - 1], 'ns')}`;
}

/** Memory of several kinds, or without CPUs, as the firmware describes it. */
function memorySection(machine: Machine): HTMLElement | null {
  const rows = memoryRows(machine);
  if (rows.length === 0) return null;
  const table: Table = {
    caption: 'Memory of each NUMA node, as the firmware describes it',
    columns: [
      ...numberColumns('NUMA node'),
      'CPUs',
      ...numberColumns('Memory'),
      'Kind',
      ...numberColumns('Bandwidth', 'Latency'),
    ],
    rows,
  };
  return section('NUMA nodes', tableElement(table));
}

/** Devices on the PCI bus, with the CPUs near each. */
function deviceSection(machine: Machine): HTMLElement | null {
  if (machine.devices.length === 0) return null;
  const table: Table = {
    caption: 'Devices on the PCI bus',
    columns: [
      'Device',
      'Type',
      'NUMA node',
      'Near CPUs',
      'Interrupts on',
      'Address',
      'Model',
      'Ways to others',
    ],
    rows: machine.devices.map((d) => [
      texts(d.names).join(' '),
      d.type ?? '',
      d.numa_node ?? '?',
      d.cpus || '?',
      d.interrupted_cpus ?? '',
      d.address ?? '',
      d.model || d.ids || '',
      d.ways ?? '',
    ]),
  };
  const notes = machine.devices
    .filter((d) => d.note)
    .map((d) => h('p', `${texts(d.names).join(' ') || d.address}: ${d.note}`));
  return section('Devices', tableElement(table), ...notes);
}

function aboutSection(machine: Machine): HTMLElement {
  const restrictions = machine.restrictions
    .map((r) => `${r.by} leaves ${r.leaves}`)
    .join('; ');
  const warnings =
    machine.warnings.length > 0
      ? h('ul', ...machine.warnings.map((warning) => h('li', warning)))
      : null;
  return section(
    'About the machine',
    facts({
      ...hostFacts({
        ...machine.host,
        machine_spec: machine.measured?.survey.machine_spec ?? null,
        counts: machine.counts,
        allowed: machine.allowed,
      }),
      'Restricted by': restrictions,
      Quota:
        machine.quota &&
        `${digits(machine.quota.cpus)} CPUs (${machine.quota.source})`,
      'Shape hash': machine.shapeHash,
    }),
    warnings,
  );
}

function effortSection(measured: Measured, started: string): HTMLElement {
  const { effort: spent, survey } = measured;
  const notes = [
    ...measured.notes,
    ...measured.leftOut.map((sentence) => `Left out: ${sentence}`),
  ];
  return section(
    'How it was measured',
    facts({
      Time: `${seconds(spent.spent_s)} of ${seconds(spent.budget_s)}`,
      Pairs: `${spent.pairs_measured ?? '–'} measured, ${spent.pairs_skipped ?? '–'} skipped, ${spent.pairs_verified ?? '–'} verified of which ${spent.pairs_disagreed ?? '–'} disagreed; up to ${spent.parallel_pairs ?? '–'} at the same time`,
      Batches: `${wholeNumber(spent.batches)}; thrown away for a switch ${spent.batches_switched ?? '–'}, for steal ${spent.batches_stolen ?? '–'}`,
      Steal:
        typeof spent.steal_share === 'number' && percent(spent.steal_share),
      Seed: String(survey.seed ?? ''),
      Started: started,
    }),
    notes.length > 0 && h('ul', ...notes.map((note) => h('li', note))),
  );
}
