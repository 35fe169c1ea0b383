// The fullest window of each kind against its limit.
import { compact, duration, number } from '../format.js';
import { table } from '../table.js';
import { axis, baseOption, strokeOf, tooltipText } from './look.js';

// One panel for each (limit, window), in the order of the data.
function panelsOf(rows) {
  const panels = new Map();
  for (const row of rows) {
    for (const window of row.windows ?? []) {
      const key = `${window.limit}/${window.window_us}`;
      if (!panels.has(key)) panels.set(key, { limit: window.limit, window_us: window.window_us, bars: [] });
      panels.get(key).bars.push({ row, worst: window.worst });
    }
  }
  return [...panels.values()];
}

function verdictOf(worst, limit) {
  if (!Number.isFinite(worst)) return '–';
  return worst > limit ? `${number(worst)}: ${number(worst - limit)} over` : number(worst);
}

const titleOf = ({ limit, window_us: us }) => `limit ${number(limit)} in any ${duration(us)}`;

export function windowChart(model) {
  const draw = (point, look) => {
    const panels = panelsOf(model.rowsAt(point));
    if (panels.length === 0) return null;
    if (panels.every(({ bars }) => bars.every(({ worst }) => !(worst > 0)))) return 'No call came to the API: its windows are empty.';
    const left = Math.min(labelRoom(model, look), Math.round(look.width * 0.32));
    const right = Math.max(...panels.flatMap(({ limit, bars }) => bars.map(({ worst }) => verdictOf(worst, limit).length))) * 7 + 16;
    let y = 34;
    const grids = panels.map(({ bars }) => {
      const grid = { left, right, top: y, height: 30 * bars.length };
      y += grid.height + 74;
      return grid;
    });
    const place = model.point(point);
    const caption = 'A window is any span of the length of one of the API’s limits. The bars are the most calls that came in ' +
      `one; the line marks the limit${place ? `; ${place}` : ''}.`;
    return {
      height: y - 38,
      caption,
      data: dataTable(model, panels),
      option: {
        ...baseOption(look, caption, 'item', (entry) => tooltip(entry, panels)),
        title: panels.map((panel, index) => ({ text: titleOf(panel), left: 0, top: grids[index].top - 28,
          padding: 0, textStyle: { color: look.text, fontSize: 13, fontWeight: 600 } })),
        grid: grids,
        xAxis: panels.map((panel, index) => countAxis(look, panel, index)),
        yAxis: panels.flatMap((panel, index) => [
          bandAxis(look, index, panel.bars.map(({ row }) => model.name(row.variant)), { width: left - 12, overflow: 'truncate' }),
          bandAxis(look, index, panel.bars.map(({ worst }) => verdictOf(worst, panel.limit)), {}, 'right'),
        ]),
        series: panels.map((panel, index) => barsOf(model, panel, index, look)),
      },
    };
  };
  return { id: 'windows', title: 'Worst windows', draw };
}

function labelRoom(model, look) {
  const longest = Math.max(...model.variants.map((variant) => model.name(variant).length));
  return Math.max(60, longest * (look.narrow ? 7 : 7.5) + 14);
}

function countAxis(look, { limit, bars }, index) {
  const most = Math.max(limit, ...bars.map(({ worst }) => (Number.isFinite(worst) ? worst : 0)));
  return axis(look, {
    type: 'value', gridIndex: index, min: 0, max: most * 1.02, splitNumber: 5,
    axisLabel: { formatter: compact, showMaxLabel: false, ...(look.narrow ? { customValues: [0, limit] } : {}) }, splitLine: { show: true, lineStyle: { color: look.line } },
    axisLine: { show: false }, axisTick: { show: false },
  });
}

// Names stand on the left, what the windows held on the right, where no bar and no limit reaches.
function bandAxis(look, index, texts, axisLabel, position = 'left') {
  return axis(look, {
    type: 'category', gridIndex: index, position, inverse: true, data: texts, axisTick: { show: false },
    axisLine: { show: position === 'left', lineStyle: { color: look.muted } },
    axisLabel: { color: look.text, fontSize: 12, interval: 0, hideOverlap: false, ...axisLabel },
  });
}

function barsOf(model, { limit, bars }, index, look) {
  return {
    type: 'bar', name: 'fullest window', xAxisIndex: index, yAxisIndex: 2 * index, barWidth: 18,
    data: bars.map(({ row, worst }) => ({
      value: Number.isFinite(worst) ? worst : null,
      itemStyle: { color: strokeOf(look, model.variants.indexOf(row.variant)).color },
    })),
    markLine: {
      silent: true, symbol: 'none', lineStyle: { color: look.text, type: 'solid', width: 2 },
      label: { show: false }, data: [{ xAxis: limit }],
    },
  };
}

function tooltip(entry, panels) {
  const panel = panels[entry.seriesIndex];
  const { worst } = panel.bars[entry.dataIndex];
  return tooltipText(titleOf(panel), [[entry.color, entry.name, verdictOf(worst, panel.limit)]]);
}

function dataTable(model, panels) {
  const body = panels.flatMap((panel) => panel.bars.map(({ row, worst }) => [model.name(row.variant), titleOf(panel), {
    content: verdictOf(worst, panel.limit),
    attributes: { 'data-window': `${panel.limit}/${panel.window_us}`, 'data-variant': row.variant, 'data-point': String(row.point) },
  }]));
  return table('Fullest windows', ['variant', 'limit', 'fullest window'], body, { numeric: true });
}
