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

/** Cuts names to a width; those that would look alike begin with the word in which they differ. */
export function fitNames(
  names: readonly string[],
  width: number,
  measure: Measure,
): string[] {
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
