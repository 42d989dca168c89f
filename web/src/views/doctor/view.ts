// Doctor's checks of a machine: what distorts measurements comes first, passed checks are folded.

import { h, visible } from '../../dom';
import { count } from '../../format';
import { adviceLine, findingsPart } from '../../method';
import type { Doctor } from '../../records';
import type { AnyRecord } from '../../source';
import { type View, stack } from '../../view';
import { facts } from '../../words';

const checkWords = (check: string): string =>
  visible(check.replaceAll('_', ' '));

/** Draws a `pinwise.doctor/1`. */
export function doctorView(record: AnyRecord): View {
  const { answer, findings, passed, unavailable } = record as Doctor;
  const unchecked = Object.entries(unavailable ?? {});
  return stack('article', '', [
    h('p.verdict', answer?.sentence ?? ''),
    adviceLine(answer?.advice),
    findingsPart(findings),
    passed?.length
      ? h(
          'details',
          h('summary', `${count(passed.length, 'check')} passed`),
          h('p', passed.map(checkWords).join(', ')),
        )
      : null,
    unchecked.length > 0 &&
      h(
        'details',
        h('summary', `${count(unchecked.length, 'check')} not possible here`),
        facts(
          Object.fromEntries(
            unchecked.map(([check, reason]) => [checkWords(check), reason]),
          ),
        ),
      ),
  ]);
}
