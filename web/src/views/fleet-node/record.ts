// The fields of "pinwise.fleet-node/1" that are drawn, read with care.

import { each, fields, number, text, texts } from '../../fields';
import type { FleetNode as FleetNodeRecord } from '../../records';
import type { AnyRecord } from '../../source';
import { labelOf, pairs } from '../fleet-report/record';

export type FleetNode = ReturnType<typeof readNode>;

export function readNode(any: AnyRecord) {
  const record = any as FleetNodeRecord;
  return {
    id: text(record.id),
    fleet: text(record.fleet),
    node: text(record.node),
    started: text(record.started),
    ended: text(record.ended),
    attempts: number(record.attempts),
    /** `null` if the machine is unknown. */
    host: record.host ? fields(record.host) : null,
    settings: pairs(record.settings),
    steps: each(record.steps, (raw) => ({
      name: text(raw.name),
      state: text(raw.state),
      record: text(raw.record),
      attempt: number(raw.attempt),
      why: text(raw.why),
      elapsedS: number(raw.elapsed_s),
    })),
    figures: each(record.figures, (raw) => {
      const value = number(raw.value);
      return value === null
        ? null
        : {
            label: labelOf(raw),
            unit: text(raw.unit),
            value,
            low: number(raw.low),
            high: number(raw.high),
          };
    }),
    clockAheadS: number(record.clock_ahead_s),
    tags: texts(record.tags),
  };
}
