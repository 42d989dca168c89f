// A topology of the machine that another record was made on, if one is at hand.

import type { HostRecord, TopologyRecord } from '../../records';
import type { Source } from '../../source';

/** Topologies that are looked through for the machine. */
const MAX_TOPOLOGIES = 20;

/** The newest stored topology of a machine of this shape; null if there is none. */
export async function topologyOf(
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
