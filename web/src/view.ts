// What a view is.

import type { Absent } from './dom';
import type { AnyRecord, Source } from './source';

/** A piece of the page that may hold resources. */
export interface Part {
  element: HTMLElement;
  dispose(): void;
}

/** A view of a record; `update` shows the same record grown. */
export interface View extends Part {
  update?(record: AnyRecord): void;
  /** Whether the record grows now. */
  grows?(isGrowing: boolean): void;
}

/** What a view keeps in the address: "#/record/ID/PART?…". */
export interface Place {
  /** What the address said when the view was opened. */
  readonly params: URLSearchParams;
  /** The address of a part in this state, to be copied; "" is the whole page. */
  address(part: string, params: URLSearchParams): string;
  /** Makes it the page's, without a step in the history; nothing to keep needs no part. */
  keep(part: string, params: URLSearchParams): void;
}

/** What views may use of the page. */
export interface Page {
  readonly source: Source;
  /** Goes to "#/record/ID" and the like. */
  go(hash: string): void;
  /** Says something to screen readers. */
  announce(sentence: string): void;
  /** The view's place; views that are not a record's page have none. */
  readonly place?: Place;
}

/** Parts below each other, disposed of together. */
export function stack(
  tag: 'div' | 'section' | 'article',
  names: string,
  parts: (Part | HTMLElement | Absent)[],
): Part {
  const element = document.createElement(tag);
  if (names) element.className = names;
  const held: Part[] = [];
  for (const part of parts) {
    if (!part) continue;
    if ('dispose' in part) {
      held.push(part);
      element.append(part.element);
    } else {
      element.append(part);
    }
  }
  return { element, dispose: () => held.forEach((part) => part.dispose()) };
}
