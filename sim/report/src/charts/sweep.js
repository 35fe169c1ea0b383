// A headline figure over the swept values, by variant, with the intervals as bands and the knees marked.
import { axisLabel, figure, interval } from '../format.js';
import { fewestPoints, kneeOf } from '../knee.js';
import { axis, baseOption, labelWidth, strokeOf, tooltipText, valueAxis } from './look.js';
import { sweepScale } from './sweep_scale.js';

function curveOf(model, { variant, points }, metric, scale) {
  return points.map((point, step) => {
    const { value = null, low = null, high = null } = model.row(variant, point)?.figures[metric] ?? {};
    return { x: scale.xs[step], step, value, low, high };
  });
}

export function sweepChart(model, metric) {
  const { title, unit, help } = model.metric(metric);
  const { parameter, values } = model.axis();
  const scale = sweepScale(values);

  const draw = (_, look) => {
    const curves = model.curves()
      .map((curve, index) => ({ name: curve.name, ...strokeOf(look, index), points: curveOf(model, curve, metric, scale) }))
      .filter(({ points }) => points.some(({ value }) => value !== null));
    if (curves.length === 0) return null;
    const all = curves.flatMap(({ points }) => points);
    if (all.every(({ value }) => !value)) {
      const where = all.every(({ value }) => value === 0) ? '' : ' at which it is known';
      return `${titled(title)}: ${figure(0, unit)} at every value of ${parameter}${where}.`;
    }
    const knees = curves.map(({ points }) => kneeAt(points, scale));
    const caption = captionOf({ title, help, parameter, values }, curves, knees);
    return {
      height: 300,
      caption,
      legend: curves.map(({ name, color, symbol, dash }) => ({ name, color, symbol, dash })),
      option: {
        ...baseOption(look, caption, 'axis', (entries) => tooltip(entries, parameter, values, unit)),
        grid: { left: labelWidth, right: 24, top: 34, bottom: 52 },
        xAxis: scaleAxis(look, scale, parameter, values),
        yAxis: valueAxis(look, unitName(unit), { axisLabel: { formatter: axisLabel(unit) },
          ...(curves.every(({ points }) => points.every(({ value, low }) => (low ?? value ?? 0) >= 0)) ? { min: 0 } : {}) }),
        series: [...curves.map((curve) => bandOf(curve)), ...curves.map((curve, index) => lineOf(curve, knees[index]))],
      },
    };
  };
  return { id: `sweep-${metric}`, title, draw };
}

// Percentages and times carry their unit in each label.
const unitName = (unit) => (['%', 'us', 'µs', 'ms', 's'].includes(unit) ? '' : unit);

function kneeAt(points, scale) {
  const defined = points.filter(({ value }) => value !== null);
  const index = kneeOf(defined.map(({ x, value }) => [scale.drawn(x), value]));
  return index < 0 ? undefined : defined[index];
}

function scaleAxis(look, scale, parameter, values) {
  const common = { name: parameter, nameLocation: 'middle', nameGap: 28 };
  if (scale.kind === 'category') {
    const width = Math.floor((look.width - labelWidth - 24) / values.length) - 4;
    return axis(look, { ...common, type: 'category', data: values.map(String), axisLabel: { interval: 0, width, overflow: 'truncate' } });
  }
  const text = (x) => String(values[scale.xs.findIndex((known) => Math.abs(known - x) <= 1e-9 * Math.abs(known))] ?? '');
  return axis(look, {
    ...common, type: scale.kind === 'log' ? 'log' : 'value', min: scale.xs[0], max: scale.xs[scale.xs.length - 1],
    axisTick: { customValues: scale.xs, lineStyle: { color: look.muted } },
    axisLabel: { customValues: scale.xs, formatter: text },
  });
}

function lineOf({ name, color, symbol, dash, points }, knee) {
  return {
    type: 'line', name, color, symbol, symbolSize: 8, showAllSymbol: true, lineStyle: { color, width: 2, type: dash },
    data: points.map(({ x, value, low, high, step }) => ({ value: [x, value], low, high, step })),
    ...(knee === undefined ? {} : {
      markPoint: {
        silent: true, symbol: 'circle', symbolSize: 20, itemStyle: { color: 'transparent', borderColor: color, borderWidth: 2 },
        label: { show: false },
        data: [{ coord: [knee.x, knee.value] }],
      },
    }),
  };
}

// The band of the intervals: one polygon for each run of points that have one.
function bandOf({ name, color, points }) {
  const runs = [];
  let open = [];
  for (const entry of [...points, null]) {
    if (entry && entry.low !== null && entry.high !== null) open.push(entry);
    else if (open.length > 0) {
      runs.push(open);
      open = [];
    }
  }
  return {
    type: 'custom', name, silent: true, clip: true, z: 1, tooltip: { show: false },
    encode: { x: 0, y: [1, 2] },
    data: runs.map((run) => [run[0].x, Math.min(...run.map(({ low }) => low)), Math.max(...run.map(({ high }) => high))]),
    renderItem: (parameters, api) => {
      const run = runs[parameters.dataIndex];
      const upper = run.map(({ x, high }) => api.coord([x, high]));
      const lower = run.map(({ x, low }) => api.coord([x, low])).reverse();
      return { type: 'polygon', shape: { points: [...upper, ...lower] }, style: { fill: color, opacity: 0.18 } };
    },
  };
}

function tooltip(entries, parameter, values, unit) {
  const shown = entries.filter(({ seriesType, data }) => seriesType === 'line' && data?.value?.[1] !== null);
  if (shown.length === 0) return '';
  const lines = shown.map(({ color, seriesName, data }) => {
    const range = interval(data.low, data.high, unit);
    return [color, seriesName, `${figure(data.value[1], unit)}${range ? ` (${range})` : ''}`];
  });
  return tooltipText(`${parameter} = ${values[shown[0].data.step]}`, lines);
}

const titled = (title) => `${title[0].toUpperCase()}${title.slice(1)}`;

// Knees are mentioned only where a curve has points enough to have one.
function captionOf({ title, help, parameter, values }, curves, knees) {
  const found = curves.map(({ name }, index) => (knees[index] ? `${curves.length > 1 ? `${name} ` : ''}at ${values[knees[index].step]}` : null))
    .filter(Boolean);
  const few = curves.every(({ points }) => points.filter(({ value }) => value !== null).length < fewestPoints);
  return [`${titled(title)} over ${parameter}.`, help,
    few ? '' : found.length > 0 ? `Rings mark knees: ${found.join(', ')}.` : 'No curve has a knee.'].filter(Boolean).join(' ');
}
