// Messages about records and addresses that cannot be shown.

import { describe, expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import {
  writePageOfRecord,
  writePageWithData,
  recordWorkspace,
  makeRecord,
} from './records';

useBrowser();

describe('what cannot be shown', () => {
  const trace = { schema: 'pinwise.trace/1' };

  test.each([
    [
      '#',
      'schema pinwise.trace/99',
      'newer pinwise',
      { schema: 'pinwise.trace/99' },
    ],
    ['#', 'schema is missing', 'truncated', { cut: 1 }],
    ['#', 'cut off or damaged', 'pinwise record report', '{"from":"file","rec'],
    ['#', 'records are missing', 'pinwise record report', '{"from":"file"}'],
    ['#/record/none', "no record 'none'", 'Records', trace],
    ['#/diff/a/b', 'does not compare', 'pinwise record diff a b', trace],
    ['#/nowhere', "no 'nowhere'", 'Records', trace],
  ])('at %s: %s, with what to do', async (hash, message, hint, given) => {
    const file =
      typeof given === 'string'
        ? writePageWithData(given)
        : writePageOfRecord(given);
    const opened = await open(file, { hash });
    const problem = opened.page.locator('div.problem');
    await problem.waitFor();
    expect(await problem.getAttribute('role')).toBe('alert');
    expect(await problem.locator('p').nth(0).textContent()).toContain(message);
    expect(await problem.locator('p').nth(1).textContent()).toContain(hint);
  });

  test('the program refuses truncated, newer and missing records in one line', () => {
    const workspace = recordWorkspace();
    const text = JSON.stringify(makeRecord('comparison'));
    const refusalOf = (argument: string): string => {
      try {
        workspace.run(
          'record report',
          argument,
          '-o',
          `${workspace.folder}/refused.html`,
        );
      } catch (error) {
        const failure = error as { status: number; stderr: string };
        expect(failure.status).toBe(2);
        return failure.stderr;
      }
      throw new Error(`'${argument}' was taken`);
    };
    expect(
      refusalOf(workspace.file('cut.json', text.slice(0, text.length / 2))),
    ).toContain('damaged');
    expect(
      refusalOf(workspace.file('newer.json', '{"schema":"pinwise.trace/99"}')),
    ).toContain('newer');
    expect(refusalOf('20200101-000000-00000000')).toContain(
      '20200101-000000-00000000',
    );
  });
});
