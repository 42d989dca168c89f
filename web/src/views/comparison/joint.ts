// The programs of a joint plan: where each runs, and its figure without and with that.

import { h } from '../../dom';
import { fixed, quantity } from '../../format';
import type { Comparison, JointProgramRecord } from '../../records';
import { cpuStrip } from '../../strip';
import { numberColumns, tableElement } from '../../table';
import { section } from '../../words';
import { mapNumber } from '../../numbers';

export function jointPart(record: Comparison): HTMLElement | null {
  const programs = record.joint?.programs ?? [];
  if (programs.length === 0) return null;
  return section(
    'Programs',
    tableElement({
      caption:
        'Medians. Their geometric mean by weight is the joint cost, compared pair by pair; weight 0: only the limit counts',
      columns: [
        'Program',
        'Placement',
        'CPUs',
        ...numberColumns('Weight', 'os-default', 'Placed'),
        'Limit',
      ],
      rows: programs.map((program) => [
        program.name,
        program.placement,
        program.cpus ? cpuStrip(program.cpus, record.host ?? {}) : null,
        mapNumber(program.weight, (weight) => fixed(weight, 2)),
        valueText(program, program.default_value),
        valueText(program, program.placed_value),
        limitText(program),
      ]),
    }),
  );
}

/** With more programs than this, their medians are folded below an interval that decides nothing. */
const MAX_OPEN_PROGRAMS = 3;

export function undecidedJointPart(record: Comparison): HTMLElement | null {
  const part = jointPart(record);
  return part && (record.joint?.programs?.length ?? 0) > MAX_OPEN_PROGRAMS
    ? h('details', h('summary', 'Each program'), part)
    : part;
}

function valueText(
  program: JointProgramRecord,
  value: number | null | undefined,
): string | null {
  return mapNumber(value, (value) =>
    quantity(value, program.metric?.unit ?? ''),
  );
}

/** `≤ 20 ms: held; broken with os-default`, `≤ 20 ms: held in both`. */
export function limitText(program: JointProgramRecord): string {
  const limit = valueText(program, program.limit);
  if (limit === null) return '';
  const { placed_limit: placed, default_limit: usual } = program;
  const sign = program.metric?.better === 'higher' ? '≥' : '≤';
  const where =
    usual === placed ? ' in both' : usual ? `; ${usual} with os-default` : '';
  return `${sign} ${limit}${placed ? `: ${placed}${where}` : ''}`;
}
