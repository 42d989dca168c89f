// A benchmark from commit to commit: what gates between them measured, chained,
// with the changes that the data establish.

import { type ChartPlan, chart } from '../../chart';
import { h, visible } from '../../dom';
import { minute } from '../../format';
import { COLOURS } from '../../plot';
import { wholeTicks } from '../../scales';
import type { CommitRange, GateHistory, GateStep } from '../../source';
import { type Part, stack } from '../../view';
import { findChangesOfSteps } from './shape';
import { recordLink } from '../../words';
import { filterMap } from '../../lists';

/** Shown characters of a commit hash. */
const SHORT_HASH_LENGTH = 10;
/** With more changes than this, their lines have no labels; the list has all. */
const MAX_LABELS = 6;

const CAPTION =
  'A diamond with ▲ is a commit of a change for the worse, with ▼ of one for the better.';

const shortHash = (commit: string): string =>
  commit.slice(0, SHORT_HASH_LENGTH);
const formatRange = ({ base, head }: CommitRange): string =>
  `${shortHash(base)}..${shortHash(head)}`;

/** The history as a chart, with its changes listed. */
export function commitsPart(history: GateHistory): Part {
  const { benchmark, changes, sentence, method } = history;
  return stack('section', '', [
    h('h2', `${benchmark} from commit to commit`),
    h('p', sentence),
    h(
      'ul.changes',
      ...changes.map((change) =>
        h('li', `${formatRange(change)}: ${change.sentence}`),
      ),
    ),
    chart(commitsPlan(history)),
    h('p.muted', method),
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
    name: `${benchmark} since ${shortHash(first)}`,
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
      rules: filterMap(changes, (change, at) => {
        const x = changeOfStep.lastIndexOf(at) + 1;
        const label = changes.length <= MAX_LABELS ? change.effect.text : '';
        return x > 0 ? { x, dash: '4 3', label: label ?? '' } : null;
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
