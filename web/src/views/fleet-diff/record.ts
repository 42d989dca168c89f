// The fields of "pinwise.fleet-diff/1" that are drawn, read with care.

import { each, fields, number, text, texts } from '../../fields';
import type { AnyRecord } from '../../source';
import { labelOf } from '../fleet-report/record';

export interface Side {
  fleet: string;
  group: string;
  nodes: number | null;
}

export interface FigureChange {
  label: string;
  unit: string;
  a: number | null;
  b: number | null;
  ratio: number | null;
  low: number | null;
  high: number | null;
}

export interface FleetDiff {
  a: Side;
  b: Side;
  settings: { name: string; a: string | null; b: string | null }[];
  figures: FigureChange[];
  onlyOne: string[];
  sentence: string;
}

function readSide(value: unknown): Side {
  const told = fields(value);
  return {
    fleet: text(told['fleet']),
    group: text(told['group']),
    nodes: number(told['nodes']),
  };
}

export function readFleetDiff(record: AnyRecord): FleetDiff {
  return {
    a: readSide(record['a']),
    b: readSide(record['b']),
    settings: each(record['settings'], (told) => ({
      name: text(told['name']),
      a: text(told['a']) || null,
      b: text(told['b']) || null,
    })),
    figures: each(record['figures'], (told) => ({
      label: labelOf(text(told['step']), text(told['name'])),
      unit: text(told['unit']),
      a: number(told['a']),
      b: number(told['b']),
      ratio: number(told['ratio']),
      low: number(told['low']),
      high: number(told['high']),
    })),
    onlyOne: texts(record['only_one']),
    sentence: text(record['sentence']),
  };
}
