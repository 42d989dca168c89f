// Cuts a value out of JSON text without parsing it: numbers that a script cannot hold, such as
// seeds of 64 bits, stay exact.

/** The text of the value that a path leads to; null if it leads nowhere. */
export function sliceValue(
  json: string,
  path: readonly (string | number)[],
): string | null {
  let at = skipBlanks(json, 0);
  for (const step of path) {
    const found = findMember(json, at, step);
    if (found === null) return null;
    at = found;
  }
  return json.slice(at, endOfValue(json, at));
}

/** Start of a member's value; the text is well-formed. */
function findMember(
  json: string,
  start: number,
  step: string | number,
): number | null {
  const isList = json[start] === '[';
  if (isList !== (typeof step === 'number') || !/[[{]/.test(json[start] ?? ''))
    return null;
  let at = skipBlanks(json, start + 1);
  for (
    let place = 0;
    at < json.length && !/[\]}]/.test(json[at]!);
    place += 1
  ) {
    let key: string | number = place;
    if (!isList) {
      const after = endOfValue(json, at);
      key = JSON.parse(json.slice(at, after)) as string;
      at = skipBlanks(json, skipBlanks(json, after) + 1);
    }
    if (key === step) return at;
    at = skipBlanks(json, endOfValue(json, at));
    if (json[at] === ',') at = skipBlanks(json, at + 1);
  }
  return null;
}

function skipBlanks(json: string, start: number): number {
  let at = start;
  while (/\s/.test(json[at] ?? '')) at += 1;
  return at;
}

/** End of a value. */
function endOfValue(json: string, start: number): number {
  let depth = 0;
  for (let at = start; at < json.length; at += 1) {
    const c = json[at]!;
    if (c === '"') {
      for (at += 1; at < json.length && json[at] !== '"'; at += 1)
        if (json[at] === '\\') at += 1;
      if (depth === 0) return at + 1;
    } else if (c === '[' || c === '{') depth += 1;
    else if (c === ']' || c === '}') {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && /[\s,]/.test(c)) return at;
  }
  return json.length;
}
