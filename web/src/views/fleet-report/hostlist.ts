// Lists of node names in the syntax of schedulers. A name comes from a node and is pasted into a
// user's shell, so only names that a host can have are passed on.

const HOST_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;

/** Names that are letters, digits, ".", "_" and "-", each once. */
export const hostNames = (names: readonly string[]): string[] =>
  [...new Set(names)].filter((name) => HOST_NAME.test(name));

/** "a,n1,n2" */
export const commaList = (names: readonly string[]): string =>
  hostNames(names).join(',');

interface NumberedName {
  prefix: string;
  digits: string;
  number: number;
}

/** Splits a name that ends in at most 15 digits. */
function splitNumber(name: string): NumberedName {
  const match = /^(.*?)(\d{1,15})$/.exec(name);
  return match
    ? { prefix: match[1]!, digits: match[2]!, number: Number(match[2]) }
    : { prefix: name, digits: '', number: 0 };
}

/** "a,n[01-03,7]", as Slurm writes and reads it. */
export function slurmList(names: readonly string[]): string {
  const byPrefix = new Map<string, NumberedName[]>();
  const alone: string[] = [];
  for (const name of hostNames(names)) {
    const parts = splitNumber(name);
    if (parts.digits === '') alone.push(name);
    else
      byPrefix.set(parts.prefix, [
        ...(byPrefix.get(parts.prefix) ?? []),
        parts,
      ]);
  }
  const bracketed = [...byPrefix].map(([prefix, members]) => {
    const runs = numberRanges(members);
    return runs.length === 1 && !runs[0]!.includes('-')
      ? `${prefix}${runs[0]}`
      : `${prefix}[${runs.join(',')}]`;
  });
  return [...alone, ...bracketed]
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
    .join(',');
}

/** Ranges of consecutive numbers with the same width: "01-03", "7". */
function numberRanges(members: readonly NumberedName[]): string[] {
  const sorted = [...members].sort(
    (a, b) => a.number - b.number || a.digits.length - b.digits.length,
  );
  const runs: { first: NumberedName; last: NumberedName }[] = [];
  for (const member of sorted) {
    const run = runs.at(-1);
    const follows =
      run !== undefined &&
      member.number === run.last.number + 1 &&
      `${member.number}`.padStart(run.first.digits.length, '0') ===
        member.digits;
    if (follows) run.last = member;
    else runs.push({ first: member, last: member });
  }
  return runs.map(({ first, last }) =>
    first === last ? first.digits : `${first.digits}-${last.digits}`,
  );
}
