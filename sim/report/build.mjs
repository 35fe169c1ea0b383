// Builds the page: one HTML file with its script, its style and ECharts inside.
// Usage: node build.mjs [FOLDER]; the folder is $SLUICE_REPORT_OUT or dist if none is given.
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const folder = resolve(process.argv[2] ?? process.env.SLUICE_REPORT_OUT ?? join(here, 'dist'));
const resultMark = '/*RESULT*/';

async function bundle() {
  const { outputFiles } = await build({
    entryPoints: [join(here, 'src/main.js')],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['es2022'],
    charset: 'utf8',
    legalComments: 'none',
    define: { 'process.env.NODE_ENV': '"production"' },
  });
  return outputFiles[0].text.trim();
}

async function style() {
  const { outputFiles } = await build({
    entryPoints: [join(here, 'src/page.css')], bundle: true, minify: true, write: false, charset: 'utf8',
  });
  return outputFiles[0].text.trim();
}

// The licences of what the file carries go with it.
async function licences() {
  const texts = [];
  for (const name of ['echarts', 'zrender', 'tslib']) {
    const module = join(here, 'node_modules', name);
    const { version } = JSON.parse(await readFile(join(module, 'package.json'), 'utf8'));
    texts.push(`${name} ${version}`);
    for (const file of ['NOTICE', 'LICENSE', 'LICENSE.txt']) {
      texts.push(await readFile(join(module, file), 'utf8').catch(() => ''));
    }
  }
  return texts.filter(Boolean).join('\n').replaceAll('--', '- -').trim();
}

function fill(page, mark, text) {
  if (page.split(mark).length !== 2) throw new Error(`src/page.html must have ${mark} once`);
  return page.replace(mark, () => text);
}

let page = await readFile(join(here, 'src/page.html'), 'utf8');
page = fill(page, '/*LICENCES*/', await licences());
page = fill(page, '/*STYLE*/', await style());
page = fill(page, '/*SCRIPT*/', await bundle());
if (page.split(resultMark).length !== 2) throw new Error(`the page must have ${resultMark} once`);
if (page.split('</script>').length !== 3) throw new Error('the script must not contain </script>');

await mkdir(folder, { recursive: true });
const file = join(folder, 'report.html');
await writeFile(`${file}.part`, page);
await rename(`${file}.part`, file);
console.log(`${file}: ${Math.round(Buffer.byteLength(page) / 1024)} KiB`);
