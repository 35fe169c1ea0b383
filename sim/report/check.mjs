// Opens reports in headless Chromium without a network and checks what a person would see.
// Usage: node check.mjs [--out FOLDER] [--template FILE] [REPORT...]
// Without reports it fills the template (dist/report.html) with made-up results. Pictures go to FOLDER (pictures).
// Exits with 0, with 1 if a check fails, and with 77 if it cannot run: without Chromium or Node.js 20.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { out: { type: 'string', default: join(here, 'pictures') }, template: { type: 'string', default: join(here, 'dist/report.html') } },
});

function skip(reason) {
  console.log(`skipped: ${reason}`);
  process.exit(77);
}

const node = Number(process.versions.node.split('.')[0]);
if (node < 20) skip(`the driver of Chromium needs Node.js 20; this is ${process.versions.node}`);
const { findChromium, launch, open } = await import('./check/browser.mjs').catch((error) => skip(`${error.message}; run npm ci`));
const { checkReport } = await import('./check/report.mjs');
const { damaged, fill, fixtures } = await import('./check/fixtures.mjs');

const executable = findChromium();
if (executable === null) skip('no chromium on the PATH; install the package chromium or set SLUICE_CHROMIUM');

const out = resolve(values.out);
await mkdir(out, { recursive: true });

let [passed, failed] = [0, 0];
const checkOf = (name) => (condition, words) => {
  if (condition) return void ++passed;
  ++failed;
  console.error(`FAILED ${name}: ${words}`);
};

async function filled(name, template, text) {
  const file = join(out, `${name}.html`);
  await writeFile(file, fill(template, text));
  return file;
}

async function checkDamaged(browser, template) {
  for (const [name, [text, words]] of Object.entries(damaged)) {
    const url = pathToFileURL(await filled(`damaged-${name.replaceAll(' ', '-')}`, template, text)).href;
    const { context, page, troubles } = await open(browser, url);
    const shown = await page.evaluate(() => document.body.innerText);
    checkOf(name)(shown.includes(words), `the page should say '${words}'; it says '${shown.slice(0, 300)}'`);
    checkOf(name)(troubles.length === 0, troubles.join('; '));
    await context.close();
  }
}

const browser = await launch(executable);
try {
  const reports = positionals.map((file) => [basename(file, '.html'), resolve(file)]);
  if (reports.length === 0) {
    const template = await readFile(resolve(values.template), 'utf8');
    for (const [name, make] of Object.entries(fixtures)) {
      reports.push([name, await filled(name, template, JSON.stringify(make()))]);
    }
    await checkDamaged(browser, template);
  }
  for (const [name, file] of reports) {
    await checkReport(checkOf(name), browser, pathToFileURL(file).href, join(out, name));
    console.log(`${name}: pictures in ${join(out, name)}-*`);
  }
} finally {
  await browser.close();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
