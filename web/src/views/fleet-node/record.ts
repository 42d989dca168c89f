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
    /** `null` where the machine could not be told. */
    host: record.host ? fields(record.host) : null,
    settings: pairs(record.settings),
    steps: each(record.steps, (told) => ({
      name: text(told.name),
      state: text(told.state),
      record: text(told.record),
      attempt: number(told.attempt),
      why: text(told.why),
      elapsedS: number(told.elapsed_s),
    })),
    figures: each(record.figures, (told) => {
      const value = number(told.value);
      return value === null
        ? null
        : {
            label: labelOf(told),
            unit: text(told.unit),
            value,
            low: number(told.low),
            high: number(told.high),
          };
    }),
    clockAheadS: number(record.clock_ahead_s),
    tags: texts(record.tags),
  };
}
