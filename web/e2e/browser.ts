// The browser of the tests, which fail if its pages report errors or make foreign requests.

import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { chromium, firefox } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';

let browser: Browser;

const launchChromium = (): Promise<Browser> =>
  chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });

/**
 * The distribution's Firefox, over WebDriver BiDi. Playwright 1.65 needs its
 * `emulation.setMediaFeaturesOverride`, which Firefox ESR 153 lacks.
 */
export const launchFirefox = (executablePath: string): Promise<Browser> =>
  firefox.launch({ channel: 'moz-firefox', executablePath });

/** Starts the browser before the tests of a file and ends it after them. */
export function useBrowser(launch = launchChromium): void {
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(async () => {
    await browser?.close();
  });
}

export interface Opened {
  page: Page;
  /** Requested addresses, the page's own among them. */
  requests: string[];
  close(): Promise<void>;
}

export interface OpenOptions {
  /** The part of the page, "#/history". */
  hash?: string;
  width?: number;
  height?: number;
  colorScheme?: 'light' | 'dark';
  /** A script that runs before the page's. */
  before?: () => void;
  /** Permits the script of a checker in the page; the test then does not see what the policy
   * forbids. */
  bypassCSP?: boolean;
  /** Permits the page to report errors. */
  canFail?: boolean;
}

/** The addresses that a report or the local site may request: itself and its contents. */
const OWN_ADDRESS = /^(file|data|blob):|^http:\/\/127\.0\.0\.1:/;

/** Opens a file or an address until the end of the test. The test fails if scripts, the console or
 * the content policy report an error, or if the page requests another address. */
export async function open(
  place: string,
  options: OpenOptions = {},
): Promise<Opened> {
  const context = await browser.newContext({
    viewport: { width: options.width ?? 1100, height: options.height ?? 800 },
    colorScheme: options.colorScheme ?? 'light',
    permissions: [],
    bypassCSP: options.bypassCSP ?? false,
  });
  // The test has its own time limit.
  context.setDefaultTimeout(0);
  const page = await context.newPage();
  if (options.before) await page.addInitScript(options.before);
  const errors: string[] = [];
  const requests: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      errors.push(message.text());
  });
  page.on('request', (request) => requests.push(request.url()));
  page.on('dialog', (dialog) => {
    errors.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  onTestFinished(async () => {
    await context.close();
    if (!options.canFail) expect(errors).toEqual([]);
    expect(requests.filter((address) => !OWN_ADDRESS.test(address))).toEqual(
      [],
    );
  });
  const url = place.includes('://') ? place : pathToFileURL(place).href;
  await page.goto(url + (options.hash ?? ''));
  return { page, requests, close: () => context.close() };
}
