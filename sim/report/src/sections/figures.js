import { element, section } from '../dom.js';
import { figure, interval, plural } from '../format.js';
import { statusBadge } from '../status.js';
import { table } from '../table.js';
import { definition, definitions, term } from '../terms.js';

// What stands below a figure: its interval, or why it has none.
function below(model, { value, low, high, never, replications }, unit) {
  if (never > 0) return `not until the end in ${never} of ${plural(model.result.replications, 'replication')}`;
  if (value === null) return '';
  return replications === 1 ? 'of one replication' : interval(low, high, unit);
}

// Of how many replications a figure is that not all have.
const part = (model, { value, never, replications }) => (value !== null && never === 0 && replications > 1 && replications < model.result.replications
  ? element('span', { class: 'help' }, `of ${replications} of ${plural(model.result.replications, 'replication')}`) : null);

// One figure with its interval below. The attributes name its place in the JSON.
export function figureCell(model, row, name) {
  const { unit } = model.metric(name);
  const found = model.figure(row, name);
  const text = found.never > 0 ? `> ${figure(found.after, 's')}` : figure(found.value, unit);
  const range = below(model, found, unit);
  return {
    attributes: { 'data-metric': name, 'data-variant': row.variant, 'data-point': String(row.point) },
    content: element('span', {},
      element('span', { class: 'value', title: text === figure(null) ? 'undefined in this run' : null }, text),
      range ? element('span', { class: 'interval' }, range) : null,
      part(model, found)),
  };
}

export function headlineSection(model, selection) {
  if (model.result.rows.length === 0 || model.result.headline.length === 0) return null;
  const frame = element('div');
  const draw = () => frame.replaceChildren(headlineTable(model, selection.point));
  selection.onChange(draw);
  draw();
  const terms = model.result.headline.map((name) => model.metric(name)).map(({ name, title, help }) => [name, title, help]);
  return section('figures', 'Figures', frame, definitions(terms));
}

// A variant with how it does and by what it differs.
function variantCell(model, row) {
  const status = model.status(row);
  const settings = model.settings(row);
  return { attributes: { 'data-row': row.variant },
    content: element('span', {}, model.name(row.variant), ' ',
      status && status !== 'holds' && status !== 'not met' ? statusBadge(status) : null,
      settings ? element('span', { class: 'help' }, settings) : null) };
}

function headlineTable(model, point) {
  const metrics = model.result.headline.map((name) => model.metric(name));
  const rows = model.rowsBySeverity(point).map((row) => [variantCell(model, row), ...metrics.map(({ name }) => figureCell(model, row, name))]);
  const place = model.point(point);
  const caption = model.result.replications === 1 ? 'Figures of one replication, so there are no intervals'
    : 'Mean over the replications, with its interval below';
  return table(`${caption}${place ? `; ${place}` : ''}`, ['variant', ...metrics.map(({ title, help }) => term(title, help))], rows, { numeric: true });
}

// Every figure of every row, for those who look for more than the headlines: a line for each metric that has a value.
export function allFigures(model) {
  const { rows, metrics } = model.result;
  const names = Object.keys(metrics).filter((name) => rows.some((row) => {
    const { value, never } = model.figure(row, name);
    return value !== null || never > 0;
  }));
  if (names.length === 0) return null;
  const heads = rows.map((row) => model.place(model.name(row.variant), row.point));
  const body = names.map((name) => {
    const { title, help } = model.metric(name);
    return [element('span', {}, title, definition(name, help)), ...rows.map((row) => figureCell(model, row, name))];
  });
  return section('all-figures', 'All figures', table('Every figure of every variant', ['figure', ...heads], body, { numeric: true, className: 'defined' }));
}
