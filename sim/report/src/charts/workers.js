// How evenly the workers share the goodput: each worker's share, sorted.
import { number, percent as percentage } from '../format.js';
import { table } from '../table.js';
import { axis, baseOption, labelWidth, strokeOf, tooltipText, valueAxis } from './look.js';

const percent = (share) => percentage(100 * share);
const sum = (values) => values.reduce((total, value) => total + value, 0);

function sharesOf(row) {
  const shares = (row.workers ?? []).filter(Number.isFinite);
  return shares.length > 1 && sum(shares) > 0 ? [...shares].sort((a, b) => a - b) : [];
}

// Jain's index: 1 if all have the same, 1/n if one has all.
export const jain = (shares) => sum(shares) ** 2 / (shares.length * sum(shares.map((share) => share * share)));

export function workerChart(model) {
  const draw = (point, look) => {
    const rows = model.rowsAt(point).filter((row) => sharesOf(row).length > 0);
    if (rows.length === 0) return null;
    const strokes = rows.map((row) => strokeOf(look, model.variants.indexOf(row.variant)));
    const place = model.point(point);
    const caption = 'Each worker’s part of the goodput (the successful calls) as a multiple of an equal part, workers sorted from the least to the ' +
      `most${place ? `; ${place}` : ''}. A level line at 1 is perfectly fair: Jain’s index of the shares is 1 there, and 1/n ` +
      'where one of n workers has everything.';
    return {
      height: 300,
      caption,
      legend: rows.map((row, index) => ({ name: model.name(row.variant), ...strokes[index], symbol: 'none' })),
      data: dataTable(model, rows),
      option: {
        ...baseOption(look, caption, 'axis', tooltip),
        grid: { left: labelWidth, right: 24, top: 34, bottom: 52 },
        xAxis: axis(look, {
          type: 'value', min: 0, max: 100, name: 'workers, from the least served to the best',
          nameLocation: 'middle', nameGap: 28, axisLabel: { formatter: '{value} %' }, splitNumber: look.narrow ? 2 : 5,
        }),
        yAxis: valueAxis(look, 'times an equal part', { min: 0, axisLabel: { formatter: (value) => `${number(value)}×` } }),
        series: rows.map((row, index) => lineOf(model, row, strokes[index], rows.length === 1)),
      },
    };
  };
  return { id: 'workers', title: 'Each worker’s share', draw };
}

// A step for each worker; few workers look like the bars they are, thousands like a curve.
function lineOf(model, row, { color, dash }, filled) {
  const shares = sharesOf(row);
  const count = shares.length;
  const steps = shares.map((share, index) => ({ value: [(100 * index) / count, share * count], share, rank: index + 1, count }));
  const last = { ...steps[count - 1], value: [100, shares[count - 1] * count] };
  return {
    type: 'line', name: model.name(row.variant), color, step: 'end', showSymbol: false, data: [...steps, last],
    lineStyle: { color, width: 2, type: dash }, ...(filled ? { areaStyle: { color, opacity: 0.2 } } : {}),
  };
}

function tooltip(entries) {
  const lines = entries.map(({ color, seriesName, data }) => [color, seriesName,
    `worker ${number(data.rank)} of ${number(data.count)}: ${percent(data.share)}`]);
  return tooltipText('share of the goodput', lines);
}

function dataTable(model, rows) {
  const body = rows.map((row) => {
    const shares = sharesOf(row);
    const entry = (name, content) => ({ content,
      attributes: { 'data-worker': name, 'data-variant': row.variant, 'data-point': String(row.point) } });
    return [model.name(row.variant), entry('count', number(shares.length)), entry('least', percent(shares[0])),
      entry('most', percent(shares[shares.length - 1])), entry('jain', String(Number(jain(shares).toFixed(4))))];
  });
  return table('Shares of the goodput', ['variant', 'workers', 'least', 'most', 'Jain’s index'], body, { numeric: true });
}
