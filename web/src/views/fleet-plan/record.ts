// The fields of "pinwise.fleet/1" that are drawn, read with care.

import { each, number, text, texts } from '../../fields';
import type { FleetRecord } from '../../records';
import type { AnyRecord } from '../../source';

export type Plan = ReturnType<typeof readPlan>;

export function readPlan(any: AnyRecord) {
  const record = any as FleetRecord;
  return {
    id: text(record.id),
    started: text(record.started),
    host: text(record.host),
    pinwise: text(record.pinwise),
    launcher: text(record.launcher),
    steps: each(record.steps, (told) => ({
      name: text(told.name),
      words: texts(told.arguments),
      timeoutS: number(told.timeout_s),
    })),
    nodes: texts(record.nodes),
    asked: number(record.asked),
    folder: text(record.folder),
    jobs: each(record.jobs, (told) => ({
      id: text(told.id),
      node: text(told.node),
      submitted: text(told.submitted),
    })),
    leftOut: texts(record.left_out),
    planted: each(record.planted, (told) => ({
      node: text(told.node),
      fault: text(told.fault),
    })),
    tags: texts(record.tags),
  };
}
