// Elements. Strings from records become text nodes and nothing else: no
// function here takes markup, and none lets a character hide.

import { joinUnits } from './format';

/** A child that adds nothing. */
export type Absent = null | undefined | false | '';
export type Child = Node | string | number | Absent;

type Properties<T> = Partial<
  Omit<T, 'style' | 'children' | 'dataset' | 'classList'>
> & {
  class?: string;
  data?: Record<string, string>;
  aria?: Record<string, string>;
  role?: string;
  onclick?: (event: MouseEvent) => void;
};

type Tags = HTMLElementTagNameMap;
type Tag = keyof Tags;
type ElementOf<S> = S extends `${infer T extends Tag}.${string}`
  ? Tags[T]
  : S extends Tag
    ? Tags[S]
    : never;

/** An element, "div" or with classes "div.chart.wide", with properties, if any, and children;
 * `class`, `role`, `aria` and `data` become attributes. No button submits. */
export function h<S extends Tag | `${Tag}.${string}`>(
  selector: S,
  first?: Properties<ElementOf<S>> | Child,
  ...children: Child[]
): ElementOf<S> {
  const [tag, ...names] = selector.split('.');
  const element = document.createElement(tag!) as ElementOf<S>;
  const hasProperties =
    typeof first === 'object' && first !== null && !(first instanceof Node);
  const { class: more, data, aria, role, ...rest } = hasProperties ? first : {};
  if (more) names.push(more);
  if (names.length > 0) element.className = names.join(' ');
  if (role) element.setAttribute('role', role);
  for (const [key, value] of Object.entries(data ?? {}))
    element.dataset[key] = value;
  for (const [key, value] of Object.entries(aria ?? {}))
    element.setAttribute(`aria-${key}`, visible(value));
  if (tag === 'button')
    (element as HTMLElement as HTMLButtonElement).type = 'button';
  Object.assign(element, rest);
  if (element.title) element.title = visible(element.title);
  append(element, hasProperties ? children : [first, ...children]);
  return element;
}

const SVG = 'http://www.w3.org/2000/svg';

/** An SVG element; every attribute as text. */
export function svg(
  tag: string,
  attributes: Record<string, string | number> = {},
  ...children: Child[]
): SVGElement {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes))
    element.setAttribute(
      key,
      key.startsWith('aria-') ? visible(String(value)) : String(value),
    );
  append(element, children);
  return element;
}

/** Elements whose text is copied or chosen as it is. */
const VERBATIM = new Set(['CODE', 'PRE', 'OPTION']);

function append(parent: Element, children: Child[]): void {
  const shown = (text: string): string =>
    VERBATIM.has(parent.tagName) ? visible(text) : joinUnits(visible(text));
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(
      typeof child === 'string'
        ? shown(child)
        : typeof child === 'number'
          ? String(child)
          : child,
    );
  }
}

/** Replaces everything in `parent`. */
export function fill(parent: Element, ...children: Child[]): void {
  parent.replaceChildren();
  append(parent, children);
}

/**
 * Text with invisible characters made visible, as pinwise prints it on terminals: control
 * characters, and those that have no width, change the direction of writing or only show at a line
 * break. Line feeds and tabs stay.
 */
export function visible(text: string): string {
  return text.replace(
    /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu,
    (c) => `\\u{${c.codePointAt(0)!.toString(16)}}`,
  );
}
