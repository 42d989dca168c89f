// Finds a stored topology of the machine on which another record was made.

import type { HostRecord, TopologyRecord } from '../../records';
import type { Source } from '../../source';

/** Only this many of the newest topologies are searched for the machine. */
const MAX_TOPOLOGIES = 20;

/** The newest stored topology of a machine of this shape; null if there is none. */
export async function findTopology(
  host: HostRecord | null | undefined,
  source: Source,
): Promise<TopologyRecord | null> {
  const shape = host?.shape_hash;
  if (!shape) return null;
  const { records } = await source.list({
    schema: 'pinwise.topology/1',
    limit: MAX_TOPOLOGIES,
  });
  const entry = records.find(({ machine }) =>
    machine?.split(', ').includes(`shape ${shape}`),
  );
  return entry ? ((await source.load(entry.id)) as TopologyRecord) : null;
}
