// The page on a phone and by the keyboard.

import { describe, expect, test } from 'vitest';

import { open, useBrowser } from './browser';
import { makeHostComparisons, waitUntilDrawn } from './view-checks';
import { makeRecord, writeReport } from './records';

useBrowser();

describe('on a phone', () => {
  test('no table scrolls sideways, and each value has its label', async () => {
    const { page } = await open(writeReport([makeRecord('comparison')!]), {
      width: 390,
      height: 800,
    });
    await waitUntilDrawn(page);
    const widths = await page
      .locator('.scroll')
      .evaluateAll((all) =>
        all.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth),
      );
    expect(widths.length).toBeGreaterThan(1);
    expect(Math.max(...widths)).toBeLessThanOrEqual(0);
    const spread = page.locator("td[data-label='Spread (cv)']").first();
    expect(
      await spread.evaluate((td) => getComputedStyle(td, '::before').content),
    ).toContain('Spread (cv)');
  });
});

describe('the keyboard', () => {
  test('reaches all controls, and the focus is visible', async () => {
    const { page } = await open(writeReport([makeRecord('topology')!]));
    await waitUntilDrawn(page);
    const visited: string[] = [];
    for (let step = 0; step < 60; step += 1) {
      await page.keyboard.press('Tab');
      const focused = await page.evaluate(() => {
        const now = document.activeElement;
        if (!now || now === document.body) return null;
        const style = getComputedStyle(now);
        const box = now.querySelector(':scope > rect');
        const isSeen =
          (style.outlineStyle !== 'none' &&
            parseFloat(style.outlineWidth) >= 2) ||
          (box !== null && parseFloat(getComputedStyle(box).strokeWidth) >= 3);
        return {
          name: `${now.tagName.toLowerCase()}.${now.getAttribute('class') ?? ''}`,
          isSeen,
        };
      });
      if (focused === null) break;
      expect(focused.isSeen, focused.name).toBe(true);
      visited.push(focused.name);
    }
    expect(visited[0]).toBe('a.skip');
    for (const wanted of [
      'a.name',
      'select.',
      'g.cpu',
      'div.matrix',
      'div.stage',
      'button.copy',
    ]) {
      expect(
        visited.some((name) => name.startsWith(wanted)),
        wanted,
      ).toBe(true);
    }
    // One stop for all CPUs: arrow keys go from one to the next.
    expect(visited.filter((name) => name.startsWith('g.cpu'))).toHaveLength(1);
  });

  test('goes from CPU to CPU and from pair to pair', async () => {
    const { page } = await open(writeReport([makeRecord('topology')!]));
    await waitUntilDrawn(page);
    await page.locator('.drawing .cpu[tabindex="0"]').focus();
    const status = page.locator('.drawing + .status-line');
    expect(await status.textContent()).toContain('CPU 0,');
    await page.keyboard.press('ArrowRight');
    expect(await status.textContent()).toContain('CPU 1,');
    await page.keyboard.press('End');
    expect(await status.textContent()).toContain('CPU 7,');
    await page.locator('.matrix').focus();
    await page.keyboard.press('ArrowRight');
    expect(
      await page.locator('.matrix-frame + .status-line').textContent(),
    ).toMatch(/^CPUs \d+ and \d+: [\d.]+\sns/);
  });

  test('skips to the content', async () => {
    const { page } = await open(writeReport([makeRecord('comparison')!]));
    await waitUntilDrawn(page);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
  });

  test('is at the heading of a new view, which is announced', async () => {
    const { page } = await open(writeReport(makeHostComparisons()));
    await waitUntilDrawn(page);
    await page.getByRole('link', { name: 'Fleet' }).click();
    await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe(
      'Fleet',
    );
    expect(await page.title()).toBe('Fleet · pinwise');
    expect(await page.locator('.offscreen[role=status]').textContent()).toBe(
      'Fleet · pinwise',
    );
    expect(
      await page
        .getByRole('link', { name: 'Fleet' })
        .getAttribute('aria-current'),
    ).toBe('page');
  });
});
