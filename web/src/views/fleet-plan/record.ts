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
    pinwise: text(record.pinwise_version),
    launcher: text(record.launcher),
    steps: each(record.steps, (raw) => ({
      name: text(raw.name),
      words: texts(raw.arguments),
      timeoutS: number(raw.timeout_s),
    })),
    nodes: texts(record.nodes),
    asked: number(record.asked),
    folder: text(record.folder),
    jobs: each(record.jobs, (raw) => ({
      id: text(raw.id),
      node: text(raw.node),
      submitted: text(raw.submitted),
    })),
    leftOut: texts(record.left_out),
    planted: each(record.planted, (raw) => ({
      node: text(raw.node),
      fault: text(raw.fault),
    })),
    tags: texts(record.tags),
  };
}
