// Any record as its fields: for records that have no drawing of their own.

import { h } from '../../dom';
import type { AnyRecord } from '../../source';
import type { View } from '../../view';
import { copyButton, section } from '../../words';

/** Characters shown at most; the rest is in the copy. */
const MAX_SHOWN = 100_000;

export function plainView(record: AnyRecord): View {
  const text = JSON.stringify(record, null, 2);
  const cut =
    text.length > MAX_SHOWN ? '\n… (cut here; the copy has all of it)' : '';
  const element = h(
    'article',
    h('p', 'This kind of record has no view of its own; these are its fields.'),
    section(
      'Fields',
      copyButton(text, 'the record'),
      h('pre', { tabIndex: 0 }, text.slice(0, MAX_SHOWN) + cut),
    ),
  );
  return { element, dispose: () => undefined };
}
