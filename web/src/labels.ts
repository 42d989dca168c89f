// Labels cut to the room that a drawing has for them.

import type { Measure } from './plot';

/** Cuts a text to a width; tooltips and the table have it in full. */
export function truncate(
  text: string,
  width: number,
  measure: Measure,
): string {
  if (measure(text) <= width) return text;
  const letters = [...text];
  while (letters.length > 1 && measure(`${letters.join('')}…`) > width)
    letters.pop();
  return `${letters.join('')}…`;
}

/** Cuts an axis title to a width: "← better   time   worse →" first to its directions. */
export const fitTitle = (
  title: string,
  width: number,
  measure: Measure,
): string =>
  truncate(
    measure(title) > width ? title.replace(/ {6}.* {6}/, ' '.repeat(6)) : title,
    width,
    measure,
  );

/** How far a text around `middle` must move to be inside of a width. */
export function shiftInside(
  text: string,
  middle: number,
  width: number,
  measure: Measure,
): number {
  const half = measure(text) / 2;
  return Math.max(half - middle, Math.min(0, width - half - middle));
}

/** Breaks a text that is too wide into two lines, at a space or after a comma. */
function wrap(text: string, width: number, measure: Measure): string {
  const words = text.split(/(?<=[ ,])/);
  let first = '';
  while (words.length > 1 && measure(`${first}${words[0]!.trimEnd()}`) <= width)
    first += words.shift()!;
  // A star alone is no line.
  return measure(first) > width / 3 && measure(text) > width
    ? `${first.trimEnd()}\n${truncate(words.join(''), width, measure)}`
    : truncate(text, width, measure);
}

/** Fits names to a width, on two lines if rows have room for them; those that would look alike begin
 * with the word in which they differ. */
export function fitNames(
  names: readonly string[],
  width: number,
  measure: Measure,
  canWrap = false,
): string[] {
  const wrapped = names.map((name) => wrap(name, width, measure));
  if (canWrap && new Set(wrapped).size === new Set(names).size) return wrapped;
  const cut = names.map((name) => truncate(name, width, measure));
  return names.map((name, at) => {
    const alike = names.filter(
      (other, i) => other !== name && cut[i] === cut[at],
    );
    if (alike.length === 0) return cut[at]!;
    let same = 0;
    while (alike.every((other) => other[same] === name[same])) same += 1;
    const word = /[^,: ·]*$/.exec(name.slice(0, same))!.index;
    return truncate(`…${name.slice(word)}`, width, measure);
  });
}
