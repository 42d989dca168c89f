// Jitter: what interrupted threads that only read the clock.

import { chart } from '../../chart';
import { h } from '../../dom';
import { adviceLine, findingsPart } from '../../method';
import type { JitterRecord } from '../../records';
import type { AnyRecord } from '../../source';
import { tableElement } from '../../table';
import { type Page, type View, stack } from '../../view';
import { facts, hostFacts, section } from '../../words';
import { causeTable, cpuTable, longestChart, lostChart } from './shape';

/** Causes shown at first. */
const MAX_CAUSES = 8;

/** Draws a `pinwise.jitter/1`. */
export function jitterView(any: AnyRecord, _page: Page): View {
  const record = any as JitterRecord;
  const isolation = record.isolation ?? {};
  const whyNoCauses = record.causes_unavailable;
  const causes = causeTable(record);
  const { answer, findings } = record;
  const lost = lostChart(record);
  const rare = causes.rows.slice(MAX_CAUSES);
  return stack('article', '', [
    h('p.verdict', answer?.sentence),
    adviceLine(answer?.advice),
    lost && chart(lost),
    section('CPUs', tableElement(cpuTable(record))),
    findingsPart(
      findings?.filter(({ sentence }) => sentence !== answer?.sentence),
    ),
    section(
      'Causes',
      ...(whyNoCauses
        ? [h('p', `Unknown: ${whyNoCauses}.`)]
        : [
            tableElement({
              ...causes,
              rows: causes.rows.slice(0, MAX_CAUSES),
            }),
            rare.length > 0 &&
              h(
                'details',
                h('summary', `${rare.length} more`),
                tableElement({
                  ...causes,
                  caption: 'Causes of less time',
                  rows: rare,
                }),
              ),
          ]),
    ),
    record.longest?.length ? chart(longestChart(record)) : null,
    section(
      'How it was measured',
      facts({
        ...hostFacts(record.host),
        isolcpus: isolation.isolated,
        nohz_full: isolation.nohz_full,
        rcu_nocbs: isolation.rcu_nocbs,
      }),
      h('ul', ...(record.notes ?? []).map((note) => h('li', note))),
    ),
  ]);
}
