// The fields of "pinwise.fleet-node/1" that are drawn, read with care.

import { each, fields, number, text, texts } from '../../fields';
import type { HostRecord } from '../../records';
import type { AnyRecord } from '../../source';
import { labelOf, pairs } from '../fleet-report/record';

export interface Step {
  name: string;
  state: string;
  record: string;
  attempt: number | null;
  why: string;
  elapsedS: number | null;
}

export interface NodeFigure {
  /** "step · name", as reports have it. */
  label: string;
  unit: string;
  value: number;
  low: number | null;
  high: number | null;
}

export interface FleetNode {
  id: string;
  fleet: string;
  node: string;
  started: string;
  ended: string;
  attempts: number | null;
  /** `null` where the machine could not be told. */
  host: HostRecord | null;
  settings: [string, string][];
  steps: Step[];
  figures: NodeFigure[];
  clockAheadS: number | null;
  tags: string[];
}

export function readNode(record: AnyRecord): FleetNode {
  return {
    id: text(record['id']),
    fleet: text(record['fleet']),
    node: text(record['node']),
    started: text(record['started']),
    ended: text(record['ended']),
    attempts: number(record['attempts']),
    host: record['host'] ? fields(record['host']) : null,
    settings: pairs(record['settings']),
    steps: each(record['steps'], (told) => ({
      name: text(told['name']),
      state: text(told['state']),
      record: text(told['record']),
      attempt: number(told['attempt']),
      why: text(told['why']),
      elapsedS: number(told['elapsed_s']),
    })),
    figures: each(record['figures'], (told) => {
      const value = number(told['value']);
      return value === null
        ? null
        : {
            label: labelOf(text(told['step']), text(told['name'])),
            unit: text(told['unit']),
            value,
            low: number(told['low']),
            high: number(told['high']),
          };
    }),
    clockAheadS: number(record['clock_ahead_s']),
    tags: texts(record['tags']),
  };
}
