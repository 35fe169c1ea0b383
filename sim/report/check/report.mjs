// The checks of one report: each is `check(condition, words)`; the words name what is wrong.
import { checkAnswer } from './answer.mjs';
import { charts, cells, definitions, empties, order, overflow, plotted, textTroubles } from './inspect.mjs';
import { agrees } from './shown.mjs';
import { open } from './browser.mjs';

export async function resultOf(page) {
  return JSON.parse(await page.evaluate(() => document.getElementById('result').textContent));
}

const variantsOf = (result) => [...new Set(result.rows.map((row) => row.variant))];
// The curves that the JSON has: of each variant, one for each text of a point without its first parameter.
function curvesOf(result, metric) {
  const grid = result.sweep.axes?.length > 1;
  const curves = new Map();
  for (const row of [...result.rows].sort((a, b) => a.point - b.point)) {
    const others = grid ? result.sweep.values[row.point].split(', ').slice(1).join(', ') : '';
    const name = grid ? [row.variant, others].filter(Boolean).join(', ') : row.variant || result.scenario;
    curves.set(name, [...(curves.get(name) ?? []), row.figures[metric]?.value ?? null]);
  }
  return [...curves].map(([name, values]) => ({ name, values }));
}

const panels = [['offered', 'admitted', 'ok', 'refused'], ['unfinished', 'waiting'], ['store_operations']];
const titles = Object.fromEntries(panels.flat().map((column) => [column, column.replace('_', ' ')]));

const pointsOf = (result) => result.sweep?.values.map((_, index) => index) ?? [0];
const hasNumber = (values) => (values ?? []).some((value) => Number.isFinite(value));

// Which charts a result must have at a point, with the names of their series, said apart from the page's own code.
function expectedCharts(result, point) {
  const charts = new Map();
  const rows = result.rows.filter((row) => row.point === point);
  const name = (variant) => variant || result.scenario;
  for (const row of rows) {
    // Of a panel in which nothing moves, no column is drawn.
    const columns = panels.filter((panel) => panel.some((column) => row.series?.columns?.[column]?.some((value) => value > 0)))
      .flat().filter((column) => row.series?.columns?.[column]?.length > 0);
    if (columns.length > 0) {
      charts.set(variantsOf(result).length > 1 ? `series-${row.variant}` : 'series',
        columns.map((column) => ({ name: titles[column], drawn: hasNumber(row.series.columns[column]) })));
    }
  }
  const of = (filter) => rows.filter(filter).map((row) => ({ name: name(row.variant), drawn: true }));
  const waits = of((row) => hasNumber((row.wait_quantiles ?? []).map(([, us]) => us)));
  if (rows.some((row) => (row.wait_quantiles ?? []).some(([, us]) => us > 0))) charts.set('waits', waits);
  if (rows.some((row) => (row.windows ?? []).some(({ worst }) => worst > 0))) charts.set('windows', []);
  const workers = of((row) => (row.workers ?? []).filter(Number.isFinite).length > 1 && row.workers.some((share) => share > 0));
  if (workers.length > 0) charts.set('workers', workers);
  for (const metric of result.sweep ? result.headline : []) {
    const found = curvesOf(result, metric).filter(({ values }) => hasNumber(values));
    const curves = found.map((curve) => ({ name: curve.name, drawn: true }));
    if (found.some(({ values }) => values.some((value) => value !== null && value !== 0))) charts.set(`sweep-${metric}`, curves);
  }
  return charts;
}

function checkCharts(check, result, point, found) {
  const expected = expectedCharts(result, point);
  const names = found.map((chart) => chart.name).sort().join(', ');
  check(names === [...expected.keys()].sort().join(', '), `charts: expected ${[...expected.keys()].sort().join(', ')}; found ${names}`);
  for (const chart of found) {
    check(chart.error === null, `${chart.name}: ${chart.error}`);
    check(chart.marks > 0, `${chart.name} has no marks`);
    check(Boolean(chart.label), `${chart.name} has no aria-label`);
    check(!/Rings|knee/.test(chart.caption) || pointsOf(result).length >= 5, `${chart.name} speaks of knees of few points: '${chart.caption}'`);
    check(/^.*\.$/.test(chart.caption.trim()), `${chart.name} has no sentence for a caption: '${chart.caption}'`);
    for (const { name, drawn } of expected.get(chart.name) ?? []) {
      const series = chart.series.find((entry) => entry.name === name);
      check(Boolean(series), `${chart.name} has no series '${name}'`);
      check(!drawn || Boolean(series?.drawn), `${chart.name} has no mark of '${name}'`);
    }
  }
}

const rowOf = (result, { variant, point }) => result.rows.find((entry) => entry.variant === variant && entry.point === Number(point));

function valueOf(result, cell) {
  const row = rowOf(result, cell);
  if (cell.metric) return [row.figures[cell.metric]?.value ?? null, result.metrics[cell.metric]?.unit ?? ''];
  if (cell.quantile) return [new Map(row.wait_quantiles).get(Number(cell.quantile)) ?? null, 'us'];
  if (cell.window) {
    const [limit, us] = cell.window.split('/').map(Number);
    return [row.windows.find((window) => window.limit === limit && window.window_us === us).worst, ''];
  }
  const shares = row.workers.filter(Number.isFinite).sort((a, b) => a - b);
  const sum = shares.reduce((total, share) => total + share, 0);
  const squares = shares.reduce((total, share) => total + share * share, 0);
  return { count: [shares.length, ''], least: [100 * shares[0], '%'], most: [100 * shares.at(-1), '%'], jain: [sum ** 2 / (shares.length * squares), ''] }[cell.worker];
}

function checkCells(check, result, found, point) {
  for (const cell of found) {
    const [value, unit] = valueOf(result, cell);
    const where = `${cell.variant}/${cell.point} ${cell.metric ?? cell.quantile ?? cell.window ?? cell.worker}`;
    const text = cell.window ? cell.text.split(':')[0] : cell.text;
    const { low = null, high = null, never = 0, after_s: after } = (cell.metric && rowOf(result, cell).figures[cell.metric]) || {};
    if (never > 0) {
      check(text.startsWith('> ') && agrees(text.slice(2), after, 's'), `${where}: the page shows '${cell.text}' of what was not seen in ${after} s`);
      check(cell.interval.includes(`in ${never} of`), `${where}: '${cell.interval}' does not say that it never came in ${never} runs`);
      continue;
    }
    check(agrees(text, value, unit), `${where}: the page shows '${cell.text}', the JSON has ${value} ${unit}`);
    if (!cell.metric) continue;
    if (value !== null && (rowOf(result, cell).figures[cell.metric].replications ?? result.replications) === 1) check(cell.interval === 'of one replication', `${where}: '${cell.interval}' below the figure of one run`);
    else if (value === null || low === null || high === null) check(cell.interval === '', `${where}: an interval '${cell.interval}' of nothing`);
    else {
      const [from, to] = cell.interval.split(' to ');
      check(agrees(from, low, unit) && agrees(to ?? '', high, unit), `${where}: the page shows '${cell.interval}', the JSON has ${low} to ${high}`);
    }
  }
  const headline = found.filter((cell) => cell.headline).length;
  const wanted = result.rows.filter((row) => row.point === point).length * result.headline.length;
  check(headline === wanted, `the head has ${headline} figures; expected ${wanted}`);
  const given = result.rows.reduce((sum, row) => sum + Object.keys(row.figures).length, 0);
  const all = found.filter((cell) => cell.metric && !cell.headline && cell.text !== '–').length;
  const defined = result.rows.reduce((sum, row) => sum + Object.values(row.figures).filter(({ value, never }) => value !== null || never > 0).length, 0);
  check(all === defined, `the table of all figures has ${all} values; the JSON has ${defined} of ${given} defined`);
}

const near = (a, b) => (a === null || a === undefined ? b === null || b === undefined : Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(b)));

function checkSeries(check, result, row, chart, drawn) {
  const rates = ['offered', 'admitted', 'ok', 'refused', 'store_operations'];
  const step = row.series.step_us;
  for (const [column, title] of Object.entries(titles).filter(([name]) => rates.includes(name))) {
    const counts = row.series.columns[column];
    const line = drawn.find((series) => series.name === title);
    if (!counts?.length || !line) continue;
    const width = (index) => Math.max(Math.min(step, result.duration_us - index * step), 1) / 1e6;
    const same = line.data.length === counts.length &&
      counts.every((count, index) => near(line.data[index][1], Number.isFinite(count) ? count / width(index) : null));
    check(same, `${chart}: '${title}' does not draw the counts of the JSON`);
  }
}

function checkPlotted(check, result, point, drawn) {
  for (const row of result.rows.filter((entry) => entry.point === point)) {
    const name = row.variant || result.scenario;
    const chart = variantsOf(result).length > 1 ? `series-${row.variant}` : 'series';
    if (row.series && drawn[chart]) checkSeries(check, result, row, chart, drawn[chart]);
    const waits = (row.wait_quantiles ?? []).filter(([, us]) => us > 0).map(([, us]) => us);
    const line = drawn.waits?.find((series) => series.name === name);
    const values = (line?.data ?? []).filter((entry) => entry.us > 0).map((entry) => entry.value);
    check(!drawn.waits || values.join() === waits.join(), `waits of ${name}: drawn ${values}, the JSON has ${waits}`);
    const shares = drawn.workers?.find((series) => series.name === name)?.data.slice(0, -1).map((entry) => entry.share) ?? [];
    const wanted = [...(row.workers ?? [])].filter(Number.isFinite).sort((a, b) => a - b);
    check(shares.length === 0 || shares.join() === wanted.join(), `workers of ${name}: the shares drawn differ from the JSON`);
  }
  const bars = (drawn.windows ?? []).flatMap((series) => series.data.map((entry) => entry.value ?? null)).sort();
  const worst = result.rows.filter((row) => row.point === point).flatMap((row) => (row.windows ?? []).map((window) => window.worst ?? null)).sort();
  check(!drawn.windows || bars.join() === worst.join(), `windows: drawn ${bars}, the JSON has ${worst}`);
  for (const metric of result.sweep ? result.headline : []) {
    for (const line of (drawn[`sweep-${metric}`] ?? []).filter(({ type }) => type === 'line')) {
      const wanted = curvesOf(result, metric).find(({ name }) => name === line.name)?.values ?? [];
      check(line.data.map((entry) => entry.value[1]).join() === wanted.join(), `sweep of ${metric}, ${line.name}: drawn values differ from the JSON`);
    }
  }
}

// The worst first, by the words of the page.
const severity = ['fails', 'objects', 'undecided', 'not met', 'holds'];
const isSorted = (statuses) => statuses.every((status, index) => index === 0 || severity.indexOf(statuses[index - 1]) <= severity.indexOf(status));

function checkOrder(check, result, point, { sections, statuses, rows, judges }) {
  const wanted = ['figures', 'expectations', 'sweep', 'series', 'distribution', 'judges', 'all-figures', 'parameters', 'repeat', 'notes'];
  const shown = wanted.filter((id) => sections.includes(id));
  check(sections.join() === shown.join(), `the sections stand as ${sections}; they should stand as ${shown}`);
  for (const [id, list] of Object.entries({ expectations: result.expectations ?? [], judges: result.judges ?? [] })) {
    check(statuses[id].length === list.length && isSorted(statuses[id]), `${id}: ${list.length} rows, the failing ones first; found ${statuses[id]}`);
  }
  const worst = (variant) => Math.min(...[...(result.expectations ?? []), ...(result.judges ?? [])]
    .filter((entry) => entry.variant === variant && (entry.point ?? 0) === point).map(({ status }) => severity.indexOf(status)), severity.length - 1);
  check(rows.every((variant, index) => index === 0 || worst(rows[index - 1]) <= worst(variant)), `the rows of the figures are not in the order of their failures: ${rows}`);
  if (!judges) return check((result.judges ?? []).length === 0, 'no judges are shown');
  const objects = result.judges.filter(({ status }) => status === 'objects').length;
  check(judges.folds === 1 && judges.besides === 0, 'the judges are not one line that opens');
  check(judges.isOpen === objects > 0, `the line of the judges is ${judges.isOpen ? 'open' : 'closed'}, and ${objects} object`);
  check(judges.line.includes(objects === 0 ? 'none objects' : `${objects} object`), `the line of the judges: '${judges.line}'`);
}

function checkDefinitions(check, result, found, { texts, bare, legends }) {
  const demand = (section, name, help) => {
    const shown = texts[section]?.[name] ?? [];
    check(Boolean(help), `${name} has no definition in the JSON`);
    check(shown.some((text) => text.includes(help)), `${section} does not say what ${name} is`);
  };
  const known = (name) => result.rows.some((row) => row.figures[name] && (row.figures[name].value !== null || row.figures[name].never > 0));
  if (result.rows.length > 0) for (const name of result.headline) demand('figures', name, result.metrics[name].help);
  for (const name of Object.keys(result.metrics).filter(known)) demand('all-figures', name, result.metrics[name].help);
  for (const { metric, status } of result.expectations ?? []) {
    demand('expectations', metric, result.metrics[metric].help);
    check((texts.expectations?.[status] ?? []).some(Boolean), `the expectations do not say what ${status} is`);
  }
  for (const { name, status } of result.judges ?? []) {
    demand('judges', name, result.judge_help[name]);
    check((texts.judges?.[status] ?? []).some(Boolean), `the judges do not say what ${status} is`);
  }
  for (const name of Object.keys(result.parameters ?? {})) demand('parameters', name, result.parameter_help[name]);
  const axis = result.sweep && (result.sweep.axes?.[0].parameter ?? result.sweep.parameter);
  if (axis && found.some((chart) => chart.name.startsWith('sweep-'))) demand('sweep', axis, result.parameter_help[axis]);
  const lines = found.filter((chart) => chart.name.startsWith('series'));
  if (lines.length > 0) for (const { kind, help } of result.faults ?? []) demand('series', kind, help);
  for (const { name } of lines.flatMap((chart) => chart.series)) {
    check((texts.series?.[name.replace(' ', '_')] ?? []).some(Boolean), `the charts do not say what ${name} is`);
  }
  for (const chart of found.filter(({ name }) => name.startsWith('sweep-'))) {
    check(chart.caption.includes(result.metrics[chart.name.slice(6)].help), `${chart.name} does not say what it shows`);
  }
  check(bare.length === 0 && legends.length === 0, `terms without a tooltip: ${[...bare, ...legends]}`);
}

function checkHead(check, result, text) {
  check(text.includes(result.scenario), `the head does not name ${result.scenario}`);
  if (result.question) check(text.includes(result.question), 'the head does not ask the question');
  check(text.includes(result.verdict), `the head does not say '${result.verdict}'`);
  check(!result.partial || /Partial: stopped after/.test(text), 'a partial run has no banner');
  check(result.partial || !/Partial/.test(text), 'a whole run has a banner');
}

// Where the page opens.
function firstPoint(result) {
  const of = (...statuses) => [...(result.expectations ?? []), ...(result.judges ?? [])].filter(({ status }) => statuses.includes(status)).map(({ point }) => point);
  return of('fails')[0] ?? of('objects')[0] ?? of('undecided')[0] ?? pointsOf(result).at(-1);
}

// What depends on the chosen point besides charts and cells.
async function checkPoint(check, page, result, point) {
  await checkAnswer(check, page, result, point);
  checkOrder(check, result, point, await page.evaluate(order));
  const empty = await page.evaluate(empties);
  check(empty.length === 0, `empty: ${empty.join(', ')}`);
}

async function checkOnce(check, { page }, picture) {
  const result = await resultOf(page);
  const last = firstPoint(result);
  checkHead(check, result, await page.evaluate(() => document.querySelector('header').innerText));
  const found = await page.evaluate(charts);
  checkCharts(check, result, last, found);
  checkDefinitions(check, result, found, await page.evaluate(definitions));
  await checkPoint(check, page, result, last);
  checkCells(check, result, await page.evaluate(cells), last);
  checkPlotted(check, result, last, await page.evaluate(plotted));
  for (const trouble of await page.evaluate(textTroubles)) check(false, trouble);
  const wide = await page.evaluate(overflow);
  check(wide.by <= 0, `the page is ${wide.by} px wider than its window: ${wide.culprits}`);
  await page.screenshot({ path: picture, fullPage: true });
  if (result.sweep) await checkOtherPoint(check, page, result);
}

function checkQuiet(check, { troubles, requests }, url) {
  check(troubles.length === 0, troubles.join('; '));
  check(requests.length === 1 && requests[0] === url, `requests beyond the file: ${requests.filter((request) => request !== url)}`);
}

async function checkOtherPoint(check, page, result) {
  await page.selectOption('#point', '0');
  await checkPoint(check, page, result, 0);
  checkCharts(check, result, 0, await page.evaluate(charts));
  checkCells(check, result, await page.evaluate(cells), 0);
  checkPlotted(check, result, 0, await page.evaluate(plotted));
}

// The tooltip opens, and the legend hides a series and shows it again without losing the focus.
async function checkHands(check, page) {
  const figures = page.locator('figure.chart:not([hidden])', { has: page.locator('.legend button') });
  if ((await figures.count()) === 0) return;
  const figure = figures.first();
  await figure.evaluate((node) => node.scrollIntoView({ block: 'center' }));
  const box = await figure.locator('.plot').boundingBox();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 80);
  await page.mouse.move(box.x + box.width * 0.5, box.y + 80);
  await page.waitForTimeout(200);
  check((await figure.locator('.plot > div').last().innerText()).trim() !== '', 'the first chart has no tooltip');
  await page.mouse.move(0, 0);

  const button = figure.locator('.legend button').last();
  const marks = () => figure.locator(`.plot svg path[stroke="${color}"]`).count();
  const color = await button.getAttribute('data-color');
  const before = await marks();
  await button.focus();
  await page.keyboard.press('Enter');
  check((await marks()) < before, 'the legend does not hide its series');
  await page.keyboard.press('Enter');
  check((await marks()) === before, 'the legend does not show its series again');
}

// Printed while dark: charts and page must both turn light, and back again.
async function checkPrint(check, session, file) {
  const { page } = session;
  const shade = () => page.evaluate(() => document.querySelector('.plot svg text')?.getAttribute('fill') ?? null);
  const before = await shade();
  await page.pdf({ path: file, format: 'A4', printBackground: true });
  check((await shade()) === before, 'after printing the charts keep the colours of print');
}

export async function checkReport(check, browser, url, pictures) {
  const modes = { light: {}, dark: { dark: true }, phone: { width: 390, height: 844, scale: 2 } };
  for (const [mode, settings] of Object.entries(modes)) {
    const session = await open(browser, url, settings);
    const named = (part) => (condition, words) => check(condition, `${part}: ${words}`);
    await checkOnce(named(mode), session, `${pictures}-${mode}.png`);
    if (mode === 'light') await checkHands(named('hands'), session.page);
    if (mode === 'dark') await checkPrint(named('print'), session, `${pictures}-print.pdf`);
    checkQuiet(named(mode), session, url);
    await session.context.close();
  }
}
