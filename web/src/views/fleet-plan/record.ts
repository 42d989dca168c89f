// The fields of "pinwise.fleet/1" that are drawn, read with care.

import { each, number, text, texts } from '../../fields';
import type { AnyRecord } from '../../source';

export interface Plan {
  id: string;
  started: string;
  host: string;
  pinwise: string;
  launcher: string;
  steps: { name: string; words: string[]; timeoutS: number | null }[];
  nodes: string[];
  asked: number | null;
  folder: string;
  jobs: { id: string; node: string; submitted: string }[];
  leftOut: string[];
  planted: { node: string; fault: string }[];
  tags: string[];
}

export function readPlan(record: AnyRecord): Plan {
  return {
    id: text(record['id']),
    started: text(record['started']),
    host: text(record['host']),
    pinwise: text(record['pinwise']),
    launcher: text(record['launcher']),
    steps: each(record['steps'], (told) => ({
      name: text(told['name']),
      words: texts(told['arguments']),
      timeoutS: number(told['timeout_s']),
    })),
    nodes: texts(record['nodes']),
    asked: number(record['asked']),
    folder: text(record['folder']),
    jobs: each(record['jobs'], (told) => ({
      id: text(told['id']),
      node: text(told['node']),
      submitted: text(told['submitted']),
    })),
    leftOut: texts(record['left_out']),
    planted: each(record['planted'], (told) => ({
      node: text(told['node']),
      fault: text(told['fault']),
    })),
    tags: texts(record['tags']),
  };
}
