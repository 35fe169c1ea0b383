// Reads the JSON of a run and checks all that the page relies on. What is wrong is said by the name of the field.

export const readableFormat = 2;

export class ReadError extends Error {
  constructor(title, detail) {
    super(detail);
    this.title = title;
  }
}

const damaged = (detail) => new ReadError('The data of this report is damaged', detail);

const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

const kinds = {
  text: (value) => typeof value === 'string',
  'a number': (value) => Number.isFinite(value),
  'a list': (value) => Array.isArray(value),
  'an object': isObject,
};

function demand(holder, field, kind, where = '') {
  const value = holder[field];
  if (kinds[kind](value)) return value;
  const found = value === undefined ? 'missing' : `${JSON.stringify(value).slice(0, 60)}`;
  throw damaged(`${where}${field} must be ${kind}; it is ${found}.`);
}

// Lists that may be left out.
function demandLists(holder, fields, where) {
  for (const field of fields) if (holder[field] !== undefined && holder[field] !== null) demand(holder, field, 'a list', where);
}

function parse(text) {
  if (text.trim() === '' || text.trim().startsWith('/*')) {
    throw new ReadError('This is the empty template of a report',
      'sluice-sim puts the result of a run in here. Write a report with: sluice-sim run SCENARIO --out FOLDER');
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw damaged(`It is not valid JSON: ${error.message}`);
  }
}

function checkFormat(result) {
  if (!isObject(result)) throw damaged('It must be an object.');
  const format = demand(result, 'format', 'a number');
  if (format === readableFormat) return;
  const [age, remedy] = format > readableFormat ? ['newer', 'Write the report again with the sluice-sim that made the data.']
    : ['older', 'Run the scenario again.'];
  throw new ReadError(`This report is ${age} than its page`,
    `The data has format ${format}; this page reads format ${readableFormat}. ${remedy}`);
}

function checkRow(row, index, points) {
  const where = `rows[${index}].`;
  if (!isObject(row)) throw damaged(`rows[${index}] must be an object.`);
  demand(row, 'variant', 'text', where);
  demand(row, 'figures', 'an object', where);
  const point = demand(row, 'point', 'a number', where);
  if (!Number.isInteger(point) || point < 0 || point >= points) {
    throw damaged(`${where}point must be a whole number from 0 to ${points - 1}; it is ${point}.`);
  }
  if (row.series) {
    const step = demand(row.series, 'step_us', 'a number', `${where}series.`);
    if (step <= 0) throw damaged(`${where}series.step_us must be above 0; it is ${step}.`);
    demand(row.series, 'columns', 'an object', `${where}series.`);
    for (const name of Object.keys(row.series.columns)) {
      demand(row.series.columns, name, 'a list', `${where}series.columns.`);
    }
  }
  demandLists(row, ['wait_quantiles', 'windows', 'workers'], where);
}

// The values of several axes make the points of their grid.
function checkAxes({ values, axes }) {
  demandLists({ axes }, ['axes'], 'sweep.');
  if (!axes) return;
  axes.forEach((axis, index) => {
    demand(axis, 'parameter', 'text', `sweep.axes[${index}].`);
    demand(axis, 'values', 'a list', `sweep.axes[${index}].`);
  });
  const points = axes.reduce((product, axis) => product * axis.values.length, 1);
  if (points !== values.length) throw damaged(`sweep.axes have ${points} points, sweep.values ${values.length}.`);
}

export function readResult(text) {
  const result = parse(text);
  checkFormat(result);
  demand(result, 'scenario', 'text');
  demand(result, 'duration_us', 'a number');
  demand(result, 'metrics', 'an object');
  demand(result, 'headline', 'a list');
  demand(result, 'rows', 'a list');
  if (result.sweep) {
    demand(result.sweep, 'parameter', 'text', 'sweep.');
    demand(result.sweep, 'values', 'a list', 'sweep.');
    checkAxes(result.sweep);
  }
  demandLists(result, ['faults', 'expectations', 'judges', 'notes']);
  const points = result.sweep ? result.sweep.values.length : 1;
  result.rows.forEach((row, index) => checkRow(row, index, points));
  return result;
}
