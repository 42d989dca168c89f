// A benchmark from commit to commit: what gates between them measured, chained,
// with the changes that the data establish.

import { type ChartPlan, chart } from '../../chart';
import { h, visible } from '../../dom';
import { commandList } from '../../headline';
import { minute } from '../../format';
import { COLOURS } from '../../plot';
import { wholeTicks } from '../../scales';
import type { GateHistory, GateStep } from '../../source';
import { type Part, stack } from '../../view';
import {
  describeHistory,
  findChangesOfSteps,
  formatRange,
  shortHash,
} from './shape';
import { recordLink } from '../../words';
import { filterMap } from '../../lists';

const CAPTION =
  'A diamond with ▲ is a commit of a change for the worse, with ▼ of one for the better.';

/** The history as a chart, with its changes listed, the newest one first in words. */
export function commitsPart(history: GateHistory): Part {
  const { changes, sentence, method } = history;
  const newest = changes.at(-1);
  return stack('section', '', [
    h('p.verdict', describeHistory(history)),
    newest &&
      commandList([
        ['Look at the change', `git log -p ${formatRange(newest)}`],
      ]),
    chart(commitsPlan(history)),
    h(
      'details',
      h('summary', `${sentence.replace(/\.$/, '')}: how it was found`),
      h(
        'ul.changes',
        ...changes.map((change) =>
          h('li', `${formatRange(change)}: ${change.sentence}`),
        ),
      ),
      h('p.muted', method),
    ),
  ]);
}

function commitsPlan(history: GateHistory): ChartPlan {
  const { benchmark, steps, changes, sentence } = history;
  const changeOfStep = findChangesOfSteps(history);
  const first = steps[0]?.base ?? '';
  const commits = [first, ...steps.map(({ head }) => head)];
  const changeLook = (at: number) => {
    const change = changes[changeOfStep[at] ?? -1];
    return change
      ? {
          colour: change.is_worse ? COLOURS.worse : COLOURS.better,
          shape: 'diamond' as const,
          sign: change.is_worse ? '▲' : '▼',
        }
      : {};
  };
  return {
    name: `${benchmark} from commit to commit`,
    summary: `${sentence} ${CAPTION}`,
    caption: CAPTION,
    panel: {
      height: 220,
      x: {
        title: 'commit',
        ticks: wholeTicks,
        label: (at) => shortHash(commits[at] ?? ''),
      },
      y: {
        title: `change since ${shortHash(first)}`,
        label: (percent) => `${percent} %`,
      },
      rules: filterMap(changes, (_, at) => {
        const x = changeOfStep.lastIndexOf(at) + 1;
        return x > 0 ? { x, dash: '4 3' } : null;
      }),
      series: [
        {
          line: 'straight',
          width: 1,
          interval: 'y',
          thickness: 1.5,
          points: [
            { x: 0, y: 0 },
            ...steps.map((step, at) => ({
              x: at + 1,
              y: step.since_first.value ?? null,
              low: step.since_first.low ?? null,
              high: step.since_first.high ?? null,
              tooltip: describeStep(
                step,
                changes[changeOfStep[at] ?? -1]?.sentence,
              ),
              ...changeLook(at),
            })),
          ],
        },
      ],
    },
    table: {
      caption: 'Steps, oldest first',
      columns: [
        'Commits',
        'Measured',
        'Change',
        'Interval',
        'Since the first',
        'Sure change',
        'Gates',
      ],
      rows: steps.map((step, at) => [
        formatRange(step),
        minute(step.started),
        step.effect.text,
        step.effect.interval,
        step.since_first.text,
        changes[changeOfStep[at] ?? -1]?.sentence,
        h('span', ...step.records.flatMap((id) => [recordLink(id, id), ' '])),
      ]),
    },
  };
}

const describeStep = (step: GateStep, change: string | undefined): string =>
  visible(
    `${formatRange(step)}\n${step.effect.text} (${step.effect.interval})${change ? `\npart of a change: ${change}` : ''}`,
  );
