// CPU sets as the records write them: "0,2-4".

/** The CPUs of a list; parts that are no list are left out. */
export function parseCpus(text: string | null | undefined): number[] {
  const cpus: number[] = [];
  for (const part of (text ?? '').split(',')) {
    const match = /^\s*(\d{1,7})(?:-(\d{1,7}))?\s*$/.exec(part);
    if (!match) continue;
    const first = Number(match[1]);
    const last = match[2] === undefined ? first : Number(match[2]);
    for (let cpu = first; cpu <= last && cpus.length < 65_536; cpu += 1)
      cpus.push(cpu);
  }
  return cpus;
}

/** "CPU 0", "CPUs 0-1", as sentences name a list. */
export const nameCpus = (list: string | null | undefined): string =>
  /^\d+$/.test(list ?? '') ? `CPU ${list}` : `CPUs ${list || '?'}`;

/** The list of CPUs: [0, 2, 3, 4] is "0,2-4". */
export function formatCpus(cpus: readonly number[]): string {
  const sorted = [...new Set(cpus)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let at = 0; at < sorted.length;) {
    let end = at;
    while (end + 1 < sorted.length && sorted[end + 1] === sorted[end]! + 1)
      end += 1;
    parts.push(end === at ? `${sorted[at]}` : `${sorted[at]}-${sorted[end]}`);
    at = end + 1;
  }
  return parts.join(',');
}
