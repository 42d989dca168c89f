// Form controls.

import { h } from './dom';

/** A select of values by their names; calls `act` with the chosen value. */
export function selectElement(
  options: readonly (readonly [value: string, name: string])[],
  act: (value: string) => void,
  { name = '', value = '' } = {},
): HTMLSelectElement {
  const select = h(
    'select',
    name ? { name } : null,
    ...options.map(([own, words]) =>
      h('option', { value: own, selected: own === value }, words),
    ),
  );
  select.addEventListener('change', () => act(select.value));
  return select;
}
