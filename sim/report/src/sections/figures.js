import { element, section } from '../dom.js';
import { figure, interval } from '../format.js';
import { table } from '../table.js';

// One figure with its interval below. The attributes name its place in the JSON.
export function figureCell(model, row, name) {
  const { unit } = model.metric(name);
  const { value = null, low = null, high = null } = row.figures[name] ?? {};
  const range = value === null ? '' : interval(low, high, unit);
  return {
    attributes: { 'data-metric': name, 'data-variant': row.variant, 'data-point': String(row.point) },
    content: element('span', {},
      element('span', { class: 'value', title: value === null ? 'undefined in this run' : null }, figure(value, unit)),
      range ? element('span', { class: 'interval' }, range) : null),
  };
}

export function headlineSection(model, selection) {
  const frame = element('div');
  const draw = () => frame.replaceChildren(headlineTable(model, selection.point));
  selection.onChange(draw);
  draw();
  return section('figures', 'Figures', frame);
}

function headlineTable(model, point) {
  const names = model.result.headline;
  const rows = model.rowsAt(point).map((row) => [model.name(row.variant),
    ...names.map((name) => figureCell(model, row, name))]);
  const place = model.point(point);
  const caption = `Mean over the replications, with its interval below${place ? `; ${place}` : ''}`;
  if (rows.length === 0) return element('p', { class: 'absent' }, 'No figures: the run has no results here.');
  return table(caption, ['variant', ...names.map((name) => model.metric(name).title)], rows, { numeric: true });
}

// Every figure of every row, for those who look for more than the headlines.
export function allFigures(model) {
  const rows = model.result.rows;
  const names = Object.keys(model.result.metrics).filter((name) => rows.some((row) => row.figures[name]));
  if (names.length === 0) return element('p', { class: 'absent' }, 'No figures: the run has no results.');
  const swept = Boolean(model.result.sweep);
  const columns = ['variant', ...(swept ? [model.result.sweep.parameter] : []), ...names.map((name) => model.metric(name).title)];
  const body = rows.map((row) => [model.name(row.variant), ...(swept ? [String(model.result.sweep.values[row.point])] : []),
    ...names.map((name) => figureCell(model, row, name))]);
  return table('Every figure of every variant', columns, body, { numeric: true });
}
