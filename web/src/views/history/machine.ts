// The machine of a record in words, and what changed from one to another.

const MACHINE_PARTS = [
  ['shape ', 'shape'],
  ['kernel ', 'kernel'],
  ['microcode ', 'microcode'],
  ['on ', 'hypervisor'],
] as const;

/** Splits "EPYC, shape ab, kernel 6.1" into its parts; what has no known prefix is the CPU's model. */
export function parseMachine(machine: string): Map<string, string> {
  const parts = new Map<string, string>();
  const model: string[] = [];
  for (const piece of machine.split(', ')) {
    const known = MACHINE_PARTS.find(([prefix]) => piece.startsWith(prefix));
    if (known) parts.set(known[1], piece.slice(known[0].length));
    else model.push(piece);
  }
  if (model.length > 0) parts.set('CPU', model.join(', '));
  return parts;
}

/** What changed from one machine to another: "kernel 6.1 → 6.2". */
export function describeChange(before: string, after: string): string {
  const [a, b] = [parseMachine(before), parseMachine(after)];
  const names = ['CPU', ...MACHINE_PARTS.map(([, name]) => name)];
  return names
    .filter((name) => a.get(name) !== b.get(name))
    .map(
      (name) =>
        `${name} ${a.get(name) ?? 'unknown'} → ${b.get(name) ?? 'unknown'}`,
    )
    .join(', ');
}
