// Sizes that a measurement did not confirm, and the memory of nodes.

import { expect, test } from 'vitest';

import { readMachine } from './record';
import { buildUnits, findDoubtfulSizes } from './shape';

const MIB = 2 ** 20;

/** One CPU with an L3 of 32 MiB, of which a program sees less. */
const machine = (verdict: string): ReturnType<typeof readMachine> =>
  readMachine({
    schema: 'pinwise.topology/1',
    cpus: [{ cpu: 0, core: 0, llc: 0, numa_node: 0, online: true }],
    caches: [{ level: 3, type: 'unified', size_bytes: 32 * MIB, cpus: '0' }],
    numa_nodes: [{ node: 0, cpus: '0', memory_bytes: 64 * 1024 * MIB }],
    measured: {
      cpus: [0],
      verdicts: [{ level: 'cache', verdict, claim: 'An L3 of 32 MiB.' }],
      ladder: {
        points: [{ bytes: 4096, latency_ns: { value: 1 } }],
        plateaus: [
          {
            level: 2,
            latency_ns: 4,
            effective_bytes: 1.1 * MIB,
            reported_bytes: MIB,
          },
          {
            level: 3,
            latency_ns: 16,
            effective_bytes: 8 * MIB,
            reported_bytes: 32 * MIB,
          },
        ],
      },
    },
  } as never);

test('a cache size that was not confirmed is marked in the drawing', () => {
  const found = machine('cannot_tell');
  expect([...findDoubtfulSizes(found)]).toEqual([
    [3, 'L3?: 8 MiB measured of 32 MiB reported.'],
  ]);
  expect(JSON.stringify(buildUnits(found))).toContain('"L3 0 · 32 MiB?"');
  expect(findDoubtfulSizes(machine('agrees')).size).toBe(0);
});

test('a narrow box of a NUMA node keeps its memory', () => {
  expect(JSON.stringify(buildUnits(machine('agrees')))).toContain(
    '["NUMA node 0 · 64 GiB","N0 · 64 GiB","NUMA node 0","N0"]',
  );
});
