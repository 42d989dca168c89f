// What a view is.

import type { AnyRecord, Source } from './source';

/** A piece of the page that may hold resources. */
export interface Part {
  element: HTMLElement;
  dispose(): void;
}

/** A view of a record; `update` shows the same record grown. */
export interface View extends Part {
  update?(record: AnyRecord): void;
}

/** What views may use of the page. */
export interface Page {
  readonly source: Source;
  /** Goes to "#/record/ID" and the like. */
  go(hash: string): void;
  /** Says something to screen readers. */
  announce(sentence: string): void;
}

/** Parts below each other, disposed of together. */
export function stack(
  tag: 'div' | 'section' | 'article',
  names: string,
  parts: (Part | HTMLElement | null)[],
): Part {
  const element = document.createElement(tag);
  if (names) element.className = names;
  const held: Part[] = [];
  for (const part of parts) {
    if (part === null) continue;
    if ('dispose' in part) {
      held.push(part);
      element.append(part.element);
    } else {
      element.append(part);
    }
  }
  return { element, dispose: () => held.forEach((part) => part.dispose()) };
}
