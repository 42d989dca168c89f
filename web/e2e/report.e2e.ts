// A report file: opened from disk.

import { expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { Bench } from './pinwise';

useBrowser();

test('a report opens from disk and asks for nothing else', async () => {
  const report = new Bench().comparison();
  const { page, errors, requests, close } = await open(report);
  await page.getByRole('heading', { level: 1 }).waitFor();
  expect(errors).toEqual([]);
  expect(requests.filter((address) => !address.startsWith('file:'))).toEqual(
    [],
  );
  await close();
});
