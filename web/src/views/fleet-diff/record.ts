// The fields of "pinwise.fleet-diff/1" that are drawn, read with care.

import { each, fields, number, text, texts } from '../../fields';
import type { FleetDiff as FleetDiffRecord, FleetSide } from '../../records';
import type { AnyRecord } from '../../source';
import { labelOf } from '../fleet-report/record';

export type FleetDiff = ReturnType<typeof readFleetDiff>;
export type FigureChange = FleetDiff['figures'][number];
export type Side = ReturnType<typeof readSide>;

function readSide(value: FleetSide | null | undefined) {
  const told = fields(value);
  return {
    fleet: text(told.fleet),
    group: text(told.group),
    nodes: number(told.nodes),
  };
}

export function readFleetDiff(any: AnyRecord) {
  const record = any as FleetDiffRecord;
  return {
    a: readSide(record.a),
    b: readSide(record.b),
    settings: each(record.settings, (told) => ({
      name: text(told.name),
      a: text(told.a) || null,
      b: text(told.b) || null,
    })),
    figures: each(record.figures, (told) => ({
      label: labelOf(told),
      unit: text(told.unit),
      a: number(told.a),
      b: number(told.b),
      ratio: number(told.ratio),
      low: number(told.low),
      high: number(told.high),
    })),
    onlyOne: texts(record.only_one),
    sentence: text(record.sentence),
  };
}
