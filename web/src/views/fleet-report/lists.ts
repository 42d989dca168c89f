// Buttons that copy names of nodes, for a scheduler or a shell.

import { h } from '../../dom';
import { count } from '../../format';
import { copyButton } from '../../words';
import { commaList, hostNames, slurmList } from './hostlist';

/** Buttons that copy the result of `names()` at the time of the click. */
export function nodeLists(
  names: () => readonly string[],
  what: string,
): { element: HTMLElement; refresh(): void } {
  const status = h('span.muted');
  const list = h('code.node-list');
  const refresh = (): void => {
    list.textContent = slurmList(names());
    const all = new Set(names());
    const left = all.size - hostNames([...all]).length;
    status.textContent =
      count(all.size, 'node') +
      (left > 0
        ? `; ${count(left, 'name')} that no host can have ${left === 1 ? 'is' : 'are'} not copied`
        : '');
  };
  refresh();
  return {
    element: h(
      'div.lists',
      status,
      list,
      copyButton(
        () => commaList(names()),
        `names of ${what}, by commas`,
        'Copy a,b,c',
      ),
      copyButton(
        () => slurmList(names()),
        `names of ${what}, as Slurm writes them`,
        'Copy n[1-3]',
      ),
    ),
    refresh,
  };
}
