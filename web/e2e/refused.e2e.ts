// What cannot be shown, and the messages about it.

import { describe, expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { expectNoErrorsNorRequests } from './conduct';
import { pageWith, recordBench, recordOf } from './records';

useBrowser();

describe('what cannot be shown', () => {
  const entry = {
    id: 'a',
    schema: 'pinwise.trace/99',
    time: '',
    host: '',
    title: 'a',
    verdict: '',
    complete: true,
    tags: [],
    subject: null,
    machine: null,
    figures: [],
  };
  const data = (record: unknown): string =>
    JSON.stringify({
      from: 'file',
      pinwise_version: '0',
      records: [{ entry, record }],
    });

  test.each([
    [
      'a newer record',
      data({ schema: 'pinwise.trace/99' }),
      '',
      'schema pinwise.trace/99',
      'newer pinwise',
    ],
    [
      'a record without a schema',
      data({ cut: 1 }),
      '',
      'schema is missing',
      'truncated',
    ],
    [
      'data that end early',
      data({ schema: 'pinwise.trace/1' }).slice(0, -9),
      '',
      'cut off or damaged',
      'pinwise record report',
    ],
    [
      'data without records',
      '{"from":"file"}',
      '',
      'records are missing',
      'pinwise record report',
    ],
    [
      'a missing record',
      data({ schema: 'pinwise.trace/1' }),
      '#/record/none',
      "no record 'none'",
      'History',
    ],
    [
      'a missing difference',
      data({ schema: 'pinwise.trace/1' }),
      '#/diff/a/b',
      'does not compare',
      'pinwise record diff a b',
    ],
    [
      'an unknown place',
      data({ schema: 'pinwise.trace/1' }),
      '#/nowhere',
      "no 'nowhere'",
      'history',
    ],
  ])('%s is reported with what to do', async (_, text, hash, message, hint) => {
    const opened = await open(
      `${new URL(`file://${pageWith(text)}`).href}${hash}`,
    );
    const problem = opened.page.locator('div.problem');
    await problem.waitFor();
    expect(await problem.getAttribute('role')).toBe('alert');
    expect(await problem.locator('p').nth(0).textContent()).toContain(message);
    expect(await problem.locator('p').nth(1).textContent()).toContain(hint);
    expectNoErrorsNorRequests(opened);
    await opened.close();
  });

  test('the program refuses truncated, newer and missing records in one line', () => {
    const bench = recordBench();
    const text = JSON.stringify(recordOf('comparison'));
    const refused = (argument: string): string => {
      try {
        bench.run(
          'record',
          'report',
          argument,
          '-o',
          `${bench.folder}/refused.html`,
        );
      } catch (error) {
        const failure = error as { status: number; stderr: string };
        expect(failure.status).toBe(2);
        return failure.stderr;
      }
      throw new Error(`'${argument}' was taken`);
    };
    expect(
      refused(bench.file('cut.json', text.slice(0, text.length / 2))),
    ).toContain('damaged');
    expect(
      refused(bench.file('newer.json', '{"schema":"pinwise.trace/99"}')),
    ).toContain('newer');
    expect(refused('20200101-000000-00000000')).toContain(
      '20200101-000000-00000000',
    );
  });
});
