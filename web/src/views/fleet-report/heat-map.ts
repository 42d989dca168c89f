// The map of a fleet's outliers: nodes by figures, coloured by their distance.

import { h } from '../../dom';
import { change, count, fixed } from '../../format';
import type { HeatPart, HeatRow } from './heat';
import { colourStrength, isWorse, outlierGlyph, toHeat } from './heat';
import { mapNumber } from '../../numbers';
import type { Outlier, Report } from './record';

/** Rows drawn at a time. */
const ROWS_AT_A_TIME = 30;

/** Called with the nodes of a clicked name. */
type Pick = (names: readonly string[]) => void;

/** The map as an element; `show` draws other outliers, or other chosen nodes. */
export function heatMap(
  report: Report,
  pick: Pick,
): {
  element: HTMLElement;
  show(outliers: readonly Outlier[], chosen: ReadonlySet<string>): void;
} {
  const table = h('table.heat', {
    aria: { label: 'Nodes that differ, by figure' },
  });
  const note = h('p.muted');
  const status = h('p.status-line');
  const more = h('button.more');
  let most = ROWS_AT_A_TIME;
  let shown: Parameters<ReturnType<typeof heatMap>['show']> | null = null;
  more.addEventListener('click', () => {
    most += ROWS_AT_A_TIME;
    if (shown) draw(...shown);
  });
  const draw = (
    outliers: readonly Outlier[],
    chosen: ReadonlySet<string>,
  ): void => {
    shown = [outliers, chosen];
    const heat = toHeat(report, outliers);
    const total = heat.parts.reduce((sum, part) => sum + part.rows.length, 0);
    let left = most;
    const bodies = heat.parts.map((part) => {
      const rows = part.rows.slice(0, Math.max(0, left));
      left -= rows.length;
      return rows.length > 0
        ? bodyRows(part, rows, heat.columns.length, report, chosen, pick)
        : null;
    });
    table.replaceChildren(...bodies.filter((body) => body !== null));
    note.textContent = `▼ below the median of its group, ▲ above, ≠ another setting; orange is worse, blue better, the darker, the further.${heat.more > 0 ? ` ${count(heat.more, 'more figure')} in the tables below.` : ''} Click a node to filter.`;
    table.querySelector('td.named')?.setAttribute('tabindex', '0');
    more.hidden = total <= most;
    more.textContent = `Show ${Math.min(ROWS_AT_A_TIME, total - most)} more`;
  };
  const say = (event: Event): void => {
    const cell = (event.target as Element).closest('td.named');
    if (cell) status.textContent = cell.querySelector('.words')!.textContent;
  };
  table.addEventListener('pointerover', say);
  table.addEventListener('focusin', say);
  table.addEventListener('keydown', (event) => onKey(event, table));
  const element = h('div.heat-map', table, more, status, note);
  return { element, show: draw };
}

function bodyRows(
  { cause, rows: all }: HeatPart,
  rows: readonly HeatRow[],
  columns: number,
  report: Report,
  chosen: ReadonlySet<string>,
  pick: Pick,
): HTMLElement {
  const what = cause
    ? `${cause.setting} = ${cause.value}`
    : report.common.length > 0
      ? 'Nothing in common'
      : 'All';
  return h(
    'tbody',
    h(
      'tr.cause',
      h(
        'th',
        { scope: 'rowgroup', colSpan: columns + 1 },
        h(
          'button',
          {
            title: 'Put these nodes into the list',
            onclick: () => pick(all.map((row) => row.node)),
          },
          `${what}: ${count(all.length, 'node')}`,
        ),
      ),
    ),
    ...rows.map((row) =>
      h(
        'tr',
        { class: chosen.has(row.node) ? 'chosen' : '' },
        h(
          'th',
          { scope: 'row' },
          h(
            'button',
            {
              title: 'Put this node into the list, or take it out',
              aria: { pressed: String(chosen.has(row.node)) },
              onclick: () => pick([row.node]),
            },
            row.node,
          ),
        ),
        ...row.cells.map(cellElement),
      ),
    ),
  );
}

function cellElement(outlier: Outlier | null): HTMLElement {
  if (!outlier) return h('td');
  const strength = colourStrength(outlier);
  const cell = h(
    'td',
    {
      class: `named ${strength === null ? 'setting' : isWorse(outlier) ? 'worse' : 'better'}`,
      tabIndex: -1,
    },
    h(
      'span',
      { aria: { hidden: 'true' } },
      `${outlierGlyph(outlier)} ${outlier.figure} ${outlier.setting ?? mapNumber(outlier.ratio, change) ?? ''}`,
    ),
    h(
      'span.words',
      (outlier.sentence || `${outlier.node}: ${outlier.figure}`) +
        (mapNumber(outlier.z, (z) => ` Robust z ${fixed(z, 1)}.`) ?? ''),
    ),
  );
  if (strength !== null)
    cell.style.setProperty(
      '--share',
      `${Math.round(Math.abs(strength) * 100)}`,
    );
  return cell;
}

/** Moves the focus between cells with an outlier by arrow keys. */
function onKey(event: KeyboardEvent, table: HTMLElement): void {
  const from = (event.target as Element).closest<HTMLElement>('td.named');
  if (!from) return;
  const all = [...table.querySelectorAll<HTMLElement>('td.named')];
  const at = all.indexOf(from);
  const column = (from as HTMLTableCellElement).cellIndex;
  const inColumn = (cell: HTMLElement): boolean =>
    (cell as HTMLTableCellElement).cellIndex === column;
  const goal = {
    ArrowRight: all[at + 1],
    ArrowLeft: all[at - 1],
    ArrowDown: all.slice(at + 1).find(inColumn),
    ArrowUp: all.slice(0, at).reverse().find(inColumn),
    Home: all[0],
    End: all.at(-1),
  }[event.key];
  if (!goal) return;
  event.preventDefault();
  from.tabIndex = -1;
  goal.tabIndex = 0;
  goal.focus();
}
