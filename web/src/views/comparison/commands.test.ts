// Commands that a reader copies from a comparison.

import { expect, test } from 'vitest';

import { applyCommands, reproduceCommand } from './commands';
import type { Arm, ComparisonRecord } from './record';

function arm(name: string, more: Partial<Arm> = {}): Arm {
  const kind = name === 'os-default' ? 'os-default' : 'confined';
  return {
    name,
    command: ['./prog', 'a b'],
    cpus: '0-3',
    placement: { name, kind, memory: null, memory_nodes: [] },
    same_as: [],
    ...more,
  };
}

function comparison(arms: Arm[], more: Partial<ComparisonRecord> = {}): ComparisonRecord {
  return {
    schema: 'pinwise.comparison/1',
    study: 'compare',
    baseline: 'os-default',
    best: 'one-llc',
    seed: 7,
    metric: { name: 'wall' },
    plan: { max_runs: 60, min_effect: 0.01, score: 'weighted' },
    host: { machine_spec: 'local' },
    verdict: { kind: 'best' },
    arms,
    ...more,
  };
}

test('the best arm is applied with pinwise and with taskset', () => {
  const told = applyCommands(comparison([arm('os-default'), arm('one-llc')]));
  expect(told.map((t) => t.command)).toEqual([`pinwise run --place one-llc -- ./prog 'a b'`, `taskset -c 0-3 ./prog 'a b'`]);
});

test('memory is placed by numactl, environment and input go along', () => {
  const best = arm('one-llc', {
    placement: { name: 'one-llc/mem=bind', kind: 'confined', memory: 'bind', memory_nodes: [0, 1] },
    workload: { environment: [['A', 'x y']], input: 'in' },
  });
  expect(applyCommands(comparison([arm('os-default'), best])).map((t) => t.command)).toEqual([
    `pinwise run --place one-llc/mem=bind -- env 'A=x y' ./prog 'a b' < in`,
    `numactl -C 0-3 --membind=0,1 env 'A=x y' ./prog 'a b' < in`,
  ]);
});

test('what a record calls a list of CPUs or nodes stays one word', () => {
  const cpus = '0;touch x';
  const nodes = ['0 $(touch y)'] as unknown as number[];
  const command = (memory: string | null): string | undefined => {
    const best = arm('one-llc', { cpus, placement: { name: 'one-llc', kind: 'confined', memory, memory_nodes: nodes } });
    return applyCommands(comparison([arm('os-default'), best]))[1]?.command;
  };
  expect(command(null)).toBe(`taskset -c '0;touch x' ./prog 'a b'`);
  expect(command('local')).toBe(`numactl -C '0;touch x' --localalloc ./prog 'a b'`);
  expect(command('bind')).toBe(`numactl -C '0;touch x' '--membind=0 $(touch y)' ./prog 'a b'`);
  expect(command('interleave')).toBe(`numactl -C '0;touch x' '--interleave=0 $(touch y)' ./prog 'a b'`);
});

test('where nothing is to be changed there is nothing to apply', () => {
  expect(applyCommands(comparison([arm('os-default')], { best: 'os-default', verdict: { kind: 'leave_alone' } }))).toEqual([]);
  expect(applyCommands(comparison([arm('os-default'), arm('one-llc')], { verdict: { kind: 'undecided' }, best: null }))).toEqual(
    [],
  );
});

test('the experiment comes back from its record', () => {
  expect(
    reproduceCommand(
      comparison([arm('os-default'), arm('spread*2', { same_as: ['cpu:0,4'] })], { host: { machine_spec: 'sim:a b.toml' } }),
    ),
  ).toBe(
    `pinwise --machine 'sim:a b.toml' compare --place os-default --place 'spread*2' --place cpu:0,4 --seed 7 --max-runs 60 -- ./prog 'a b'`,
  );
});

test('several commands keep their names, a placebo its option', () => {
  const arms = [
    arm('t=1', { command: ['p', '1'] }),
    arm('t=2', { command: ['p', '2'] }),
    arm('placebo', { command: ['p', '1'] }),
  ];
  for (const one of arms) one.placement = { name: 'os-default', kind: 'os-default' };
  expect(reproduceCommand(comparison(arms, { baseline: 't=1' }))).toBe(
    `pinwise compare --place os-default --seed 7 --max-runs 60 --placebo --command 'p 1' --name t=1 --command 'p 2' --name t=2`,
  );
});

test('what the record does not hold is not made up', () => {
  expect(reproduceCommand(comparison([arm('os-default', { workload: { recipe: 'redis' } })]))).toBeNull();
  expect(reproduceCommand(comparison([arm('os-default')], { study: 'bench' }))).toBeNull();
  expect(reproduceCommand(comparison([]))).toBeNull();
});
