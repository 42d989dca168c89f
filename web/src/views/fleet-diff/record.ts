// The fields of "pinwise.fleet-diff/1" that are drawn, read with care.

import { each, fields, items, number, text, texts } from '../../fields';
import type { FleetDiff as FleetDiffRecord, FleetSide } from '../../records';
import type { AnyRecord } from '../../source';
import { labelOf } from '../fleet-report/record';

export type FleetDiff = ReturnType<typeof readFleetDiff>;
export type FigureChange = FleetDiff['figures'][number];
export type Side = ReturnType<typeof readSide>;

function readSide(value: FleetSide | null | undefined) {
  const raw = fields(value);
  return {
    fleet: text(raw.fleet),
    group: text(raw.group),
    nodes: number(raw.nodes),
  };
}

export function readFleetDiff(any: AnyRecord) {
  const record = any as FleetDiffRecord;
  return {
    a: readSide(record.a),
    b: readSide(record.b),
    settings: each(record.settings, (raw) => ({
      name: text(raw.name),
      a: text(raw.a) || null,
      b: text(raw.b) || null,
    })),
    figures: each(record.figures, (raw) => ({
      label: labelOf(raw),
      unit: text(raw.unit),
      a: number(raw.a),
      b: number(raw.b),
      ratio: number(raw.ratio),
      low: number(raw.low),
      high: number(raw.high),
    })),
    attributions: items(record.attributions),
    onlyOne: texts(record.only_one),
    sentence: text(record.sentence),
  };
}
