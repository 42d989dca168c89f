// Charts by Apache ECharts, each with a name for screen readers, a sentence
// that says what it shows, and the same figures as a table.

import {
  BarChart,
  CustomChart,
  HeatmapChart,
  LineChart,
  ScatterChart,
} from 'echarts/charts';
import {
  GridComponent,
  LegendComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TooltipComponent,
  VisualMapComponent,
} from 'echarts/components';
import type { EChartsCoreOption } from 'echarts/core';
import { init, use } from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';

import { h, visible } from './dom';
import type { Table } from './table';
import { tableElement } from './table';
import type { Theme } from './theme';
import { onTheme, theme } from './theme';
import type { Part } from './view';

use([
  BarChart,
  CustomChart,
  HeatmapChart,
  LineChart,
  ScatterChart,
  GridComponent,
  LegendComponent,
  MarkAreaComponent,
  MarkLineComponent,
  TooltipComponent,
  VisualMapComponent,
  CanvasRenderer,
]);

export interface ChartPlan {
  /** What screen readers call it, and its caption: "Ratio to os-default". */
  name: string;
  /** What it shows, as a sentence; what a sighted reader sees at a glance. */
  summary: string;
  /** Height in CSS pixels. */
  height: number;
  /** ECharts' option in these colours. Tooltips are drawn as text, never as markup. */
  option: (theme: Theme) => EChartsCoreOption;
  /** The figures in words. */
  table?: Table;
  /** What a click on a point does; the table must offer the same. */
  pick?: (point: { seriesIndex?: number; dataIndex: number }) => void;
}

/** A chart as a figure; call `dispose` when it goes. */
export function chart(plan: ChartPlan): Part & {
  redraw(next: ChartPlan): void;
  instance(): ReturnType<typeof init> | null;
} {
  let now = plan;
  let instance: ReturnType<typeof init> | null = null;
  const stage = h('div', { class: 'stage', role: 'img', tabIndex: 0 });
  const caption = h('figcaption');
  const details = h('details', { class: 'figures' });
  const element = h(
    'figure',
    { class: 'chart', data: { chart: plan.name } },
    caption,
    stage,
    details,
  );

  const figures = h('div');
  details.append(h('summary', {}, 'The figures'), figures);
  const describe = (): void => {
    const [name, summary] = [visible(now.name), visible(now.summary)];
    stage.setAttribute('aria-label', `${name}. ${summary}`);
    stage.style.height = `${now.height}px`;
    caption.replaceChildren(
      h('strong', {}, name),
      ' ',
      h('span', { class: 'muted' }, summary),
    );
    details.hidden = !now.table;
    // The summary stays, so that a redraw takes no reader's focus from it.
    figures.replaceChildren(...(now.table ? [tableElement(now.table)] : []));
  };
  const draw = (): void => {
    if (!instance || stage.clientWidth === 0) return;
    const colours = theme();
    instance.setOption(
      { ...base(colours), ...now.option(colours) },
      { notMerge: true },
    );
  };
  const size = new ResizeObserver(() => {
    if (stage.clientWidth === 0) return;
    if (instance) instance.resize();
    else {
      instance = init(stage, null, { renderer: 'canvas' });
      instance.on('click', (point) => now.pick?.(point));
    }
    draw();
  });
  size.observe(stage);
  describe();
  const stop = onTheme(draw);
  return {
    element,
    instance: () => instance,
    redraw(next) {
      now = next;
      describe();
      instance?.resize();
      draw();
    },
    dispose() {
      stop();
      size.disconnect();
      instance?.dispose();
    },
  };
}

/** What all charts share. */
function base(colours: Theme): EChartsCoreOption {
  return {
    animation: false,
    backgroundColor: 'transparent',
    color: [...colours.series],
    textStyle: { color: colours.text, fontFamily: 'inherit' },
    tooltip: tooltip(colours),
    grid: {
      left: 8,
      right: 16,
      top: 16,
      bottom: 8,
      outerBoundsMode: 'same',
      outerBoundsContain: 'axisLabel',
    },
  };
}

/** A tooltip that is drawn, so that no string of a record can become markup. */
export function tooltip(
  colours: Theme,
  more: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    renderMode: 'richText',
    confine: true,
    backgroundColor: colours.background,
    borderColor: colours.line,
    textStyle: { color: colours.text, fontSize: 12 },
    ...more,
  };
}

/** An axis in the page's colours. */
export function axis(
  colours: Theme,
  more: Record<string, unknown>,
): Record<string, unknown> {
  return {
    axisLine: { onZero: false, lineStyle: { color: colours.line } },
    axisTick: { lineStyle: { color: colours.line } },
    axisLabel: { color: colours.muted, hideOverlap: true },
    nameTextStyle: { color: colours.muted },
    splitLine: { lineStyle: { color: colours.line, opacity: 0.6 } },
    ...more,
  };
}
