// The commands that a comparison comes to: what applies its best arm, and what
// makes the experiment again.

import { shellWords } from '../../words';
import type { Arm, ComparisonRecord, Workload } from './record';

export interface Told {
  /** What it does: "with pinwise". */
  what: string;
  command: string;
}

const isDefault = (arm: Arm): boolean => arm.placement?.kind === 'os-default' && !arm.placement.memory;

/** Commands that run the best arm from now on; none where nothing is to be changed. */
export function applyCommands(record: ComparisonRecord): Told[] {
  const best = (record.arms ?? []).find((arm) => arm.name === record.best);
  if (!best || record.verdict?.kind !== 'best' || best.name === record.baseline || !best.command?.length) return [];
  const command = withSurroundings(best);
  if (isDefault(best)) return [{ what: 'as it is', command }];
  const told: Told[] = [
    { what: 'with pinwise', command: `pinwise run --place ${shellWords([best.placement?.name ?? best.name])} -- ${command}` },
  ];
  const tool = bindingTool(best);
  if (tool) told.push({ what: `with ${tool[0]}`, command: `${shellWords(tool)} ${command}` });
  return told;
}

/** The arm's command with its environment and input. */
function withSurroundings(arm: Arm): string {
  const pairs = environment(arm.workload).map(([name, value]) => `${name}=${value}`);
  const words = pairs.length > 0 ? ['env', ...pairs, ...(arm.command ?? [])] : (arm.command ?? []);
  const input = arm.workload?.input;
  return shellWords(words) + (input ? ` < ${shellWords([input])}` : '');
}

/** taskset, or numactl where memory is placed, too; null where the record does not tell enough. */
function bindingTool(arm: Arm): string[] | null {
  if (!arm.cpus) return null;
  const memory = memoryOption(arm);
  if (memory === null) return null;
  return memory === '' ? ['taskset', '-c', arm.cpus] : ['numactl', '-C', arm.cpus, memory];
}

/** What numactl is told of memory: '' for nothing, null for what it has no word for. */
function memoryOption(arm: Arm): string | null {
  const nodes = (arm.placement?.memory_nodes ?? []).join(',');
  switch (arm.placement?.memory ?? null) {
    case null:
      return '';
    case 'local':
      return '--localalloc';
    case 'bind':
      return `--membind=${nodes}`;
    case 'interleave':
      return `--interleave=${nodes}`;
    default:
      return null;
  }
}

function environment(workload: Workload | null | undefined): [string, string][] {
  return (workload?.environment ?? []).flatMap((pair) => (Array.isArray(pair) ? [pair] : []));
}

/** The command of the whole experiment; null where the record does not hold all of it. */
export function reproduceCommand(record: ComparisonRecord): string | null {
  const arms = (record.arms ?? []).filter((arm) => arm.name !== 'placebo');
  const first = arms[0];
  if (!first || arms.some((arm) => !isPlain(arm, first))) return null;
  if (record.study === 'aa') {
    const place = first.placement?.name ?? 'os-default';
    return [
      'pinwise',
      ...machine(record),
      'aa',
      '--arms',
      String(arms.length),
      ...(place === 'os-default' ? [] : ['--place', place]),
      ...plan(record),
      '--',
      ...first.command!,
    ]
      .map(quoted)
      .join(' ');
  }
  if (record.study !== 'compare') return null;
  const crossed = cross(arms);
  if (!crossed) return null;
  return [
    'pinwise',
    ...machine(record),
    'compare',
    ...crossed.places.flatMap((p) => ['--place', p]),
    ...plan(record),
    ...extras(record, first),
    ...crossed.commands,
  ]
    .map(quoted)
    .join(' ');
}

const quoted = (word: string): string => shellWords([word]);

/** Nothing but a command with the surroundings that all arms have. */
function isPlain(arm: Arm, first: Arm): boolean {
  const workload = arm.workload;
  const isTold = !workload?.recipe && !workload?.verify && !workload?.expect && (arm.command?.length ?? 0) > 0;
  return isTold && JSON.stringify(workload ?? null) === JSON.stringify(first.workload ?? null);
}

/** Arms as commands times placements, in this order, or null. */
function cross(arms: readonly Arm[]): { places: string[]; commands: string[] } | null {
  const places = [...new Set(arms.map((arm) => arm.placement?.name ?? ''))];
  const lines = [...new Set(arms.map((arm) => shellWords(arm.command ?? [])))];
  if (places.includes('') || arms.length !== places.length * lines.length) return null;
  const isOrdered = arms.every(
    (arm, at) =>
      arm.placement?.name === places[at % places.length] &&
      shellWords(arm.command ?? []) === lines[Math.floor(at / places.length)],
  );
  if (!isOrdered) return null;
  const merged = arms.slice(0, places.length).flatMap((arm) => arm.same_as ?? []);
  const all = [...places, ...merged];
  if (lines.length === 1) return { places: all, commands: ['--', ...arms[0]!.command!] };
  const names = lines.map((_, at) => nameOf(arms[at * places.length]!));
  const isNamed = names.some((name, at) => name !== lines[at]);
  return {
    places: all,
    commands: lines.flatMap((line, at) => ['--command', line, ...(isNamed ? ['--name', names[at]!] : [])]),
  };
}

/** "./old @ one-llc" is of the command "./old". */
function nameOf(arm: Arm): string {
  const end = ` @ ${arm.placement?.name ?? ''}`;
  return arm.name.endsWith(end) ? arm.name.slice(0, -end.length) : arm.name;
}

function machine(record: ComparisonRecord): string[] {
  const spec = record.host?.['machine_spec'];
  return typeof spec === 'string' && spec !== 'local' ? ['--machine', spec] : [];
}

const share = (value: number): string => `${Number((value * 100).toPrecision(6))}%`;

function plan(record: ComparisonRecord): string[] {
  const words: string[] = [];
  const { plan: told, metric } = record;
  if (typeof record.seed === 'number') words.push('--seed', String(record.seed));
  if (metric?.name && metric.name !== 'wall') words.push('--metric', metric.name);
  if (typeof told?.budget_s === 'number') words.push('--budget', `${told.budget_s}s`);
  if (typeof told?.max_runs === 'number') words.push('--max-runs', String(told.max_runs));
  if (typeof told?.precision === 'number') words.push('--precision', share(told.precision));
  if (typeof told?.min_effect === 'number' && told.min_effect !== 0.01) words.push('--min-effect', share(told.min_effect));
  if (told?.judge && told.judge !== 'typical') words.push('--judge', told.judge);
  if (told?.score && told.score !== 'weighted') words.push('--score', told.score);
  return words;
}

function extras(record: ComparisonRecord, first: Arm): string[] {
  const words: string[] = [];
  const { workload } = first;
  const arms = record.arms ?? [];
  if (record.baseline && record.baseline !== first.name) words.push('--baseline', record.baseline);
  if (arms.some((arm) => arm.name === 'placebo')) words.push('--placebo');
  if (arms.some((arm) => arm.trace)) words.push('--trace');
  if (workload?.input) words.push('--input', workload.input);
  for (const [name, value] of environment(workload)) words.push('--env', `${name}=${value}`);
  if (typeof workload?.prepare === 'string') words.push('--prepare', workload.prepare);
  if (typeof workload?.cleanup === 'string') words.push('--cleanup', workload.cleanup);
  if (typeof workload?.timeout_s === 'number') words.push('--timeout', `${workload.timeout_s}s`);
  return words;
}
