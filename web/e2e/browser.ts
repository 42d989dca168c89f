// A browser, and a watch over the requests and errors of its pages.

import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { chromium, firefox } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';

let browser: Browser;

const inChromium = (): Promise<Browser> =>
  chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });

/**
 * The distribution's Firefox, over WebDriver BiDi. Playwright 1.65 needs its
 * `emulation.setMediaFeaturesOverride`, which Firefox ESR 153 lacks.
 */
export const inFirefox = (executablePath: string): Promise<Browser> =>
  firefox.launch({ channel: 'moz-firefox', executablePath });

/** Starts the browser before the tests of a file and ends it after them. */
export function useBrowser(launch = inChromium): void {
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

export interface Look {
  /** The part of the page, "#/history". */
  hash?: string;
  width?: number;
  height?: number;
  colorScheme?: 'light' | 'dark';
  /** A script that runs before the page's. */
  before?: () => void;
  /** Lets a checker's script into the page; what the policy forbids is then not seen. */
  bypassCSP?: boolean;
  /** Lets the page report errors. */
  canFail?: boolean;
}

/** What a report or the local site asks for: itself, and what it holds. */
const OWN = /^(file|data|blob):|^http:\/\/127\.0\.0\.1:/;

/** Opens a file or an address until the end of the test, which fails if scripts, the console or the
 * content policy report an error, or anything else is asked for. */
export async function open(place: string, look: Look = {}): Promise<Opened> {
  const context = await browser.newContext({
    viewport: { width: look.width ?? 1100, height: look.height ?? 800 },
    colorScheme: look.colorScheme ?? 'light',
    permissions: [],
    bypassCSP: look.bypassCSP ?? false,
  });
  // The test has a limit of its own.
  context.setDefaultTimeout(0);
  const page = await context.newPage();
  if (look.before) await page.addInitScript(look.before);
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
    if (!look.canFail) expect(errors).toEqual([]);
    expect(requests.filter((address) => !OWN.test(address))).toEqual([]);
  });
  const url = place.includes('://') ? place : pathToFileURL(place).href;
  await page.goto(url + (look.hash ?? ''));
  return { page, requests, close: () => context.close() };
}
