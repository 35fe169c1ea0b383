// How long jobs wait: quantiles by variant on a logarithmic axis.
import { decade, duration, figure, quantile } from '../format.js';
import { table } from '../table.js';
import { axis, baseOption, labelWidth, strokeOf, tooltipText, valueAxis } from './look.js';

const quantilesOf = (row) => (row.wait_quantiles ?? []).filter(([, us]) => us !== null && us !== undefined);

// The axis spans whole steps of decades. Zero has no place on it: with zeros in the data, the decade below stands for
// zero.
function span(rows) {
  const waits = rows.flatMap((row) => quantilesOf(row).map(([, us]) => us));
  const positive = waits.filter((us) => us > 0);
  const zeros = positive.length < waits.length;
  if (positive.length === 0) return { zeros, floor: 100, top: 10_000, step: 1 };
  const low = Math.floor(Math.log10(Math.min(...positive))) - (zeros ? 1 : 0);
  const decades = Math.max(Math.ceil(Math.log10(Math.max(...positive))) - low, 1);
  const step = Math.ceil(decades / 8);
  return { zeros, floor: 10 ** low, top: 10 ** (low + Math.ceil(decades / step) * step), step };
}

export function waitChart(model) {
  const draw = (point, look) => {
    const rows = model.rowsAt(point).filter((row) => quantilesOf(row).length > 0);
    if (rows.length === 0) return null;
    if (rows.every((row) => quantilesOf(row).every(([, us]) => us === 0))) return 'No job waits: every wait is 0.';
    const quantiles = [...new Set(rows.flatMap((row) => quantilesOf(row).map(([q]) => q)))].sort((a, b) => a - b);
    const { zeros, floor, top, step } = span(rows);
    const strokes = rows.map((row) => strokeOf(look, model.variants.indexOf(row.variant)));
    const place = model.point(point);
    const caption = `The time from when a job comes until its successful call is sent. p99, a quantile, is what 99 % of the jobs wait at most${place ? `; ${place}` : ''}. ` +
      `The axis is logarithmic.${zeros ? ' Jobs that do not wait at all stand on the lowest line, labelled 0.' : ''}`;
    return {
      height: 320,
      caption,
      legend: rows.map((row, index) => ({ name: model.name(row.variant), ...strokes[index] })),
      data: dataTable(model, rows, quantiles),
      option: {
        ...baseOption(look, caption, 'axis', (entries) => tooltip(entries)),
        grid: { left: labelWidth, right: 24, top: 34, bottom: 34 },
        xAxis: axis(look, { type: 'category', data: quantiles.map(quantile), boundaryGap: true }),
        yAxis: valueAxis(look, 'wait', {
          type: 'log', logBase: 10, min: floor, max: top, interval: step,
          axisLabel: { formatter: (us) => (zeros && us <= floor * 1.001 ? '0' : decade(Number(us.toPrecision(6)))) },
        }),
        series: rows.map((row, index) => lineOf(model, row, quantiles, strokes[index], floor)),
      },
    };
  };
  return { id: 'waits', title: 'Waits', draw };
}

function lineOf(model, row, quantiles, { color, symbol, dash }, floor) {
  const waits = new Map(quantilesOf(row));
  return {
    type: 'line', name: model.name(row.variant), color, symbol, symbolSize: 9, showAllSymbol: true,
    lineStyle: { color, width: 2, type: dash },
    // `us` is the wait itself; the value is where it stands.
    data: quantiles.map((q) => (waits.has(q) ? { value: Math.max(waits.get(q), floor), us: waits.get(q) } : { value: null })),
  };
}

function tooltip(entries) {
  const lines = entries.filter((entry) => entry.data?.us !== undefined)
    .map((entry) => [entry.color, entry.seriesName, duration(entry.data.us)]);
  return entries.length === 0 ? '' : tooltipText(entries[0].axisValueLabel, lines);
}

function dataTable(model, rows, quantiles) {
  const body = rows.map((row) => {
    const waits = new Map(quantilesOf(row));
    return [model.name(row.variant), ...quantiles.map((q) => ({
      content: figure(waits.get(q), 'us'),
      attributes: { 'data-quantile': String(q), 'data-variant': row.variant, 'data-point': String(row.point) },
    }))];
  });
  return table('Wait quantiles', ['variant', ...quantiles.map(quantile)], body, { numeric: true });
}
