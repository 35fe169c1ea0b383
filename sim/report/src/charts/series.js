// How a run goes over time: calls, waiting callers and store operations, in panels over one time axis.
import { compact, duration, number } from '../format.js';
import { seriesTerms } from '../terms.js';
import { baseOption, labelWidth, tooltipText, valueAxis } from './look.js';
import { niceStep, timeAxis, timeScale } from './time.js';

const panels = [
  { name: 'calls/s', noun: 'calls', idle: 'no job comes', share: 3, columns: ['offered', 'admitted', 'ok', 'refused'] },
  { name: 'jobs', noun: 'unfinished jobs', idle: 'no job is unfinished at the end of any step', share: 1.4, columns: ['unfinished', 'waiting'], level: true },
  { name: 'store operations/s', noun: 'store operations', idle: 'the store has no operations', share: 1.4, columns: ['store_operations'] },
];

const columns = {
  offered: { color: 7, dash: 'dashed', width: 1.5, z: 4 },
  // As a rule the same as ok: broad and below it, so that both are seen.
  admitted: { color: 4, width: 5, opacity: 0.55, z: 2 },
  ok: { color: 2 },
  refused: { color: 1 },
  unfinished: { color: 0, dash: 'dashed', width: 1.5, z: 2 },
  waiting: { color: 3 },
  store_operations: { color: 5 },
};

const titleOf = (column) => seriesTerms[column][0];

// Points [us, value] of a column: a rate stands in the middle of its step, a level at the step's end.
export function pointsOf(series, column, level, durationUs) {
  const step = series.step_us;
  return series.columns[column].map((value, index) => {
    const start = index * step;
    const width = Math.max(Math.min(step, durationUs - start), 1);
    const x = level ? Math.min(start + step, durationUs) : start + width / 2;
    return [x, Number.isFinite(value) ? (level ? value : (value * 1e6) / width) : null];
  });
}

const present = (series, column) => (series?.columns?.[column]?.length ?? 0) > 0;
const moves = (series, column) => present(series, column) && series.columns[column].some((value) => value > 0);

// The panels of some rows in which something moves; a panel of zeros would be empty.
function panelsOf(rows) {
  return panels
    .filter((panel) => panel.columns.some((column) => rows.some((row) => moves(row.series, column))))
    .map((panel) => ({ ...panel, columns: panel.columns.filter((column) => rows.some((row) => present(row.series, column))) }));
}

export const drawnColumns = (rows) => panelsOf(rows).flatMap((panel) => panel.columns);

// What a chart says of the panels that it leaves out.
const idleOf = (row, shown) => panels.filter((panel) => !shown.some(({ name }) => name === panel.name) &&
  panel.columns.some((column) => present(row.series, column))).map(({ idle }) => idle);

// The highest value of a panel over some rows, which small multiples share unless one would flatten the others.
function highest(rows, panel, durationUs) {
  const values = rows.flatMap((row) => panel.columns.filter((column) => present(row.series, column))
    .flatMap((column) => pointsOf(row.series, column, panel.level, durationUs).map(([, value]) => value ?? 0)));
  return values.reduce((most, value) => Math.max(most, value), 0);
}

function sharedMaximum(rows, panel, durationUs) {
  const each = rows.map((row) => highest([row], panel, durationUs)).filter((value) => value > 0);
  if (each.length === 0) return 0;
  const [low, high] = [Math.min(...each), Math.max(...each)];
  return high <= 6 * low ? high : undefined;
}

function faultAreas(model, row, look, scale, labelled) {
  const end = model.result.duration_us;
  const warmup = model.warmup(row);
  const areas = model.faults.filter((fault) => fault.to_us > fault.from_us).map((fault) => [
    { xAxis: scale.of(fault.from_us), itemStyle: { color: look.fault },
      label: { show: labelled, formatter: String(model.faults.indexOf(fault) + 1) } },
    { xAxis: scale.of(Math.min(fault.to_us, end)) },
  ]);
  if (warmup > 0) {
    areas.unshift([{ xAxis: 0, itemStyle: { color: look.warmup }, label: { show: false } },
      { xAxis: scale.of(warmup) }]);
  }
  return { silent: true, label: { color: look.muted, fontSize: 11, position: 'insideTop', distance: 2 }, data: areas };
}

function faultMoments(model, look, scale, labelled) {
  return {
    silent: true, symbol: 'none', lineStyle: { color: look.bad, type: 'dashed', width: 1, opacity: 0.7 },
    data: model.faults.filter((fault) => fault.to_us <= fault.from_us).map((fault) => ({
      xAxis: scale.of(fault.from_us),
      label: { show: labelled, formatter: String(model.faults.indexOf(fault) + 1), position: 'end', rotate: 0, distance: 3,
        color: look.muted, fontSize: 11 },
    })),
  };
}

function layout(shown, printing) {
  const [top, gap, bottom, total] = [34, 46, 50, printing ? 80 + 60 * shown.length : 130 + 80 * shown.length];
  const shares = shown.reduce((sum, panel) => sum + panel.share, 0);
  const room = total - gap * (shown.length - 1);
  let y = top;
  const grids = shown.map((panel) => {
    const height = Math.round((room * panel.share) / shares);
    const grid = { left: labelWidth, right: 18, top: y, height };
    y += height + gap;
    return grid;
  });
  return { grids, height: y - gap + bottom };
}

function lineOf(model, row, panel, index, column, look, scale) {
  const { color, dash = 'solid', width = 2, opacity = 1, z = 3 } = columns[column];
  const title = titleOf(column);
  const labelled = index === 0 && model.faults.length <= 20;
  const first = column === panel.columns.find((name) => present(row.series, name));
  const points = pointsOf(row.series, column, panel.level, model.result.duration_us);
  return {
    type: 'line', name: title, xAxisIndex: index, yAxisIndex: index, color: look.palette[color],
    lineStyle: { color: look.palette[color], width, opacity, type: dash },
    showSymbol: points.length === 1, symbol: 'circle', symbolSize: 6, z,
    data: points.map(([us, value]) => [scale.of(us), value]),
    ...(first ? { markArea: faultAreas(model, row, look, scale, labelled), markLine: faultMoments(model, look, scale, labelled) } : {}),
  };
}

export function seriesChart(model, variant) {
  const durationUs = model.result.duration_us;
  const scale = timeScale(durationUs);

  const draw = (point, look) => {
    const rows = model.rowsAt(point);
    const row = model.row(variant, point);
    const shown = panelsOf(rows).filter((panel) => panel.columns.some((column) => moves(row?.series, column)));
    if (shown.length === 0) return null;
    const { grids, height } = layout(shown, look.printing);
    const maxima = shown.map((panel) => sharedMaximum(rows, panel, durationUs));
    const series = shown.flatMap((panel, index) => panel.columns.filter((column) => present(row.series, column))
      .map((column) => lineOf(model, row, panel, index, column, look, scale)));
    const place = model.place(variant, point);
    const caption = captionOf(shown, place, rows.length, maxima, idleOf(row, shown));
    return {
      height,
      caption,
      legend: series.map(({ name, color, lineStyle }) => ({ name, color, dash: lineStyle.type, help: helpOf(name) })),
      option: {
        ...baseOption(look, caption, 'axis', (entries) => tooltip(entries, scale)),
        axisPointer: { link: [{ xAxisIndex: 'all' }] },
        grid: grids,
        xAxis: shown.map((_, index) => timeAxis(look, scale, durationUs, {
          gridIndex: index,
          ...(index === shown.length - 1
            ? { name: `virtual time, ${scale.unit}`, nameLocation: 'middle', nameGap: 26 }
            : { axisLabel: { show: false } }),
        })),
        yAxis: shown.map((panel, index) => valueAxis(look, panel.name, {
          gridIndex: index, min: 0, ...roundAxis(maxima[index] ?? highest([row], panel, durationUs), index === 0 ? 5 : 3),
          axisLabel: { formatter: compact },
        })),
        series,
      },
    };
  };
  return { id: model.variants.length > 1 ? `series-${variant}` : 'series', title: model.name(variant), draw };
}

const helpOf = (name) => Object.values(seriesTerms).find(([title]) => title === name)[1];

// A top of the axis that is a whole number of round steps.
function roundAxis(highest, most) {
  if (!(highest > 0)) return { max: 1, interval: 1 };
  const step = niceStep(highest, most, [1, 2, 2.5, 5, 10, 20]);
  return { max: Math.ceil(highest / step) * step, interval: step };
}

function captionOf(shown, place, count, maxima, idle) {
  const names = shown.map((panel) => panel.noun);
  const listed = names.length > 1 ? `${names.slice(0, -1).join(', ')} and ${names.at(-1)}` : names[0];
  const own = count > 1 && maxima.some((maximum) => maximum === undefined);
  return `${listed[0].toUpperCase()}${listed.slice(1)} over virtual time${place ? `: ${place}` : ''}.` +
    `${own ? ' Some scales are this variant’s own, for the variants differ too much.' : ''}` +
    idle.map((words) => ` ${words[0].toUpperCase()}${words.slice(1)}.`).join('');
}

function tooltip(entries, scale) {
  const lines = entries.filter((entry) => Number.isFinite(entry.value?.[1])).map((entry) => [entry.color, entry.seriesName,
    `${number(entry.value[1])}${[titleOf('waiting'), titleOf('unfinished')].includes(entry.seriesName) ? '' : '/s'}`]);
  return entries.length === 0 ? '' : tooltipText(`at ${duration(Math.round(scale.us(entries[0].value[0])))}`, lines);
}
