// Debian's Chromium, without any network.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium } from 'playwright-core';

export function findChromium() {
  if (process.env.SLUICE_CHROMIUM) return process.env.SLUICE_CHROMIUM;
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return join(folder, name);
      } catch {
        // Not here.
      }
    }
  }
  return null;
}

export const launch = (executablePath) =>
  chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'] });

// Opens a file in a page of its own and notes each request beyond the file, each console error and each exception.
export async function open(browser, url, { width = 1280, height = 900, dark = false, scale = 1 } = {}) {
  const context = await browser.newContext({
    viewport: { width, height }, colorScheme: dark ? 'dark' : 'light', deviceScaleFactor: scale,
  });
  context.setDefaultTimeout(180_000);  // machines may be busy
  await context.setOffline(true);
  const page = await context.newPage();
  const troubles = [];
  const requests = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) troubles.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => troubles.push(`exception: ${error.message}`));
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(url);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return { context, page, troubles, requests };
}
