// The answer to the question of a scenario, in a sentence or two, from the figures alone.
//
// It tells up to three headline figures: those whose titles share a word with the question, and then the first ones. Of
// several variants it names the one that is best in the figures that the question asks for (the first one, if it names
// none), and the one that is worst, with what it is worse in. A figure in which variants differ by no more than their
// intervals tells nothing of them. What fails, or is not decided, is said first.
import { figure, interval, number, plural, spoken } from './format.js';

const most = 3;

// Words that say nothing of which figure is asked for.
const common = new Set(['after', 'again', 'all', 'and', 'any', 'api', 'are', 'away', 'call', 'come', 'does', 'each', 'first', 'for',
  'from', 'has', 'have', 'how', 'its', 'job', 'last', 'limit', 'limiter', 'long', 'many', 'more', 'most', 'much', 'must', 'not', 'once',
  'one', 'other', 'others', 'than', 'that', 'the', 'their', 'them', 'then', 'there', 'they', 'those', 'time', 'under', 'until', 'was',
  'what', 'when', 'which', 'while', 'who', 'whom', 'will', 'with', 'work', 'would']);

const wordsOf = (text) => text.toLowerCase().split(/[^a-z0-9]+/).map((word) => word.replace(/s$/, ''))
  .filter((word) => word.length > 2 && !common.has(word));

// "waits" and "waiting" are one word, and so are "recover" and "recovery".
const isAlike = (a, b) => (Math.min(a.length, b.length) < 4 ? a === b : a.slice(0, 4) === b.slice(0, 4));

// The headline figures of a point that the answer tells, and among them those by which it ranks the variants.
export function toldMetrics(model, point) {
  const rows = model.rowsAt(point);
  const known = model.result.headline.map((name) => model.metric(name)).filter(({ name }) =>
    rows.some((row) => isKnown(model.figure(row, name))));
  const question = wordsOf(model.result.question ?? '');
  const asked = known.filter(({ title }) => wordsOf(title).some((word) => question.some((other) => isAlike(word, other)))).slice(0, most);
  const chosen = [...asked, ...known.filter((metric) => !asked.includes(metric))].slice(0, most);
  return { told: known.filter((metric) => chosen.includes(metric)), ranked: asked.length > 0 ? asked : known.slice(0, 1) };
}

const isKnown = ({ value, never }) => value !== null || never > 0;

// From 0, the best of the rows, to 1: how bad a figure is, and how much the rows differ in it.
function regrets(model, rows, { name, unit, better }) {
  const none = rows.map(() => 0);
  if (better === '') return none;
  const figures = rows.map((row) => model.figure(row, name));
  const known = figures.filter(({ value }) => value !== null).sort((a, b) => (better === 'less' ? a.value - b.value : b.value - a.value));
  if (known.length === 0) return none;
  const [best, worst] = [known[0], known[known.length - 1]];
  const range = Math.abs(worst.value - best.value);
  const weight = isApart(best, worst)
    ? Math.min(range / Math.max(Math.abs(worst.value), Math.abs(best.value)), unit === '%' ? range : 1, 1) : 0;
  return figures.map(({ value }) => (value === null ? 1 : weight === 0 ? 0 : (weight * Math.abs(value - best.value)) / range));
}

// Whether two figures differ by more than chance: their intervals do not meet.
function isApart(a, b) {
  if (a.low === null || b.low === null) return a.value !== b.value;
  return a.low > b.high || b.low > a.high;
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

// The rows among which the best is sought: not a variant that others are only measured against, if two are left.
function candidates(model, point) {
  const rows = model.rowsAt(point);
  const yardsticks = new Set(model.expectations.map(({ of }) => of).filter(Boolean));
  const rest = rows.filter(({ variant }) => !yardsticks.has(variant));
  return rest.length > 1 ? rest : rows;
}

// The best and the worst row by the ranked figures, and where these are alike, by all that are told.
function ranking(model, point, { told, ranked }) {
  const rows = candidates(model, point);
  const byMetric = new Map(told.map((metric) => [metric.name, regrets(model, rows, metric)]));
  const order = rows.map((row, index) => ({
    row,
    regret: sum(ranked.map(({ name }) => byMetric.get(name)[index])),
    tie: sum([...byMetric.values()].map((values) => values[index])),
    of: (name) => byMetric.get(name)[index],
  })).sort((a, b) => a.regret - b.regret || a.tie - b.tie);
  return { best: order[0], worst: order[order.length - 1] };
}

// A figure in a sentence: its text, and where it stands in the JSON.
function valueOf(model, row, { name, unit }) {
  const { value, never, after } = model.figure(row, name);
  const text = value === null && never > 0 ? `more than ${figure(after, 's')}` : value === null ? 'an unknown number' : spoken(value, unit);
  return { figure: text, metric: name, variant: row.variant, point: row.point };
}

// "0.15 % of the calls are answered 429", as parts.
function clause(model, row, metric) {
  const [before, after = ''] = (metric.phrase || `${metric.title}: {}`).split('{}');
  const value = valueOf(model, row, metric);
  const noun = value.figure === '1' && /^ [a-z ]+s$/.test(after) ? after.slice(0, -1) : after;
  return [before, value, noun].filter((part) => part !== '');
}

const listed = (clauses) => clauses.flatMap((parts, index) =>
  (index === 0 ? parts : [index === clauses.length - 1 ? ' and ' : ', ', ...parts]));

const clauses = (model, row, metrics) => listed(metrics.map((metric) => clause(model, row, metric)));

const capital = (parts) => (typeof parts[0] === 'string' ? [parts[0][0].toUpperCase() + parts[0].slice(1), ...parts.slice(1)] : parts);

// In which of the told figures the worst variant is clearly worse than the best.
function contrasts(told, best, worst) {
  const differences = told.map((metric) => ({ metric, by: worst.of(metric.name) - best.of(metric.name) })).filter(({ by }) => by > 0);
  const clear = differences.filter(({ by }) => by >= 0.5);
  return (clear.length > 0 ? clear : differences.sort((a, b) => b.by - a.by).slice(0, 1)).map(({ metric }) => metric);
}

function ofVariants(model, point, { told, ranked }) {
  const { best, worst } = ranking(model, point, { told, ranked });
  const worse = contrasts(told, best, worst);
  const name = ({ row }) => ({ code: row.variant });
  if (worse.length === 0) {
    return ['no variant differs from the others by more than its intervals: with ', name(best), ', ', ...clauses(model, best.row, told)];
  }
  return ['with ', name(best), ', ', ...clauses(model, best.row, told), '; with ', name(worst), ', ', ...clauses(model, worst.row, worse)];
}

// Without variants, a sweep is told by its ends.
function ofSweep(model, told) {
  const [first, last] = [model.points[0], model.points[model.points.length - 1]].map((point) => model.rowsAt(point)[0]);
  if (!first || !last) return null;
  const changed = told.filter(({ name }) => {
    const [a, b] = [model.figure(first, name), model.figure(last, name)];
    return isKnown(a) !== isKnown(b) || (a.value !== null && b.value !== null && isApart(a, b));
  });
  const end = changed.length > 0 ? clauses(model, last, changed) : ['no figure of these differs by more than its interval'];
  return [`at ${model.point(first.point)}, `, ...clauses(model, first, told), `; at ${model.point(last.point)}, `, ...end];
}

// The figures at a point of a sweep, as parts of a sentence; null without figures.
export function figuresSentence(model, point) {
  const { told, ranked } = toldMetrics(model, point);
  const rows = model.rowsAt(point);
  if (told.length === 0 || rows.length === 0) return null;
  if (rows.length > 1) {
    const place = model.result.sweep ? [`at ${model.point(point)}, `] : [];
    return [...capital([...place, ...ofVariants(model, point, { told, ranked })]), '.'];
  }
  const parts = model.result.sweep ? ofSweep(model, told) : clauses(model, rows[0], told);
  return parts && [...capital(parts), '.'];
}

// "at most 5 %", "190 % to 200 %", "60 % within 1 %".
export function bounds({ least, most: upper, equals, within, of }, unit) {
  const text = (value) => (of ? `${number(value)} times` : figure(value, unit));
  const has = (value) => value !== null && value !== undefined;
  const parts = [];
  if (has(least) && has(upper)) parts.push(`${text(least)} to ${text(upper)}`);
  else if (has(least)) parts.push(`at least ${text(least)}`);
  else if (has(upper)) parts.push(`at most ${text(upper)}`);
  if (has(equals)) parts.push(`${text(equals)}${within > 0 ? ` within ${text(within)}` : ''}`);
  return parts.join(' and ');
}

// The measured value of an expectation: of a figure, or of the quotient of two.
export function measured({ value, low, high, of, never = 0, after_s: after }, unit) {
  if (of) return { value: value === null ? figure(null) : `${number(value)} times`, range: interval(low, high, '') };
  return { value: never > 0 ? `> ${figure(after, 's')}` : figure(value, unit), range: interval(low, high, unit) };
}

function expectationClause(model, expectation) {
  const metric = model.metric(expectation.metric);
  const row = model.row(expectation.variant ?? '', expectation.point ?? 0);
  if (row && !expectation.of && isKnown(model.figure(row, metric.name))) return clause(model, row, metric);
  if (!Number.isFinite(expectation.value)) return [`“${metric.title}” is not known`];
  return [`“${metric.title}” is ${measured(expectation, metric.unit).value} that of `, { code: expectation.of }];
}

const where = (model, { variant, point }) => [
  ...(variant ? [' with ', { code: variant }] : []),
  ...(model.result.sweep && Number.isInteger(point) ? [` at ${model.point(point)}`] : []),
];

function expectationSentence(model, expectation, fails) {
  const { unit } = model.metric(expectation.metric);
  const range = expectation.low === null || expectation.low === undefined ? '' : measured(expectation, unit).range;
  return [fails ? 'It fails' : 'It is not decided', ...where(model, expectation), ': ', ...expectationClause(model, expectation),
    range !== '' && expectation.low !== expectation.high ? ` (interval ${range})` : '', `, where ${bounds(expectation, unit)} is expected.`];
}

// How many more fail, are undecided or object than the one that was told.
function others(model, told) {
  const parts = [[model.expectations, 'fails', 'expectation', 'fails', 'fail'], [model.expectations, 'undecided', 'expectation', 'is undecided', 'are undecided'],
    [model.judges, 'objects', 'judgement', 'objects', 'object']].map(([entries, status, noun, one, many]) => {
    const count = entries.filter((entry) => entry !== told && entry.status === status).length;
    const more = told.status === status ? 'more ' : '';
    return count > 0 ? `${plural(count, more + noun)} ${count === 1 ? one : many}` : '';
  }).filter(Boolean);
  return parts.length > 0 ? [` ${parts.join(', ')}.`] : [];
}

// What fails or is not decided, as parts of sentences; null if everything holds.
export function verdictSentence(model) {
  const { result, expectations, judges } = model;
  const worst = expectations[0];
  if (worst?.status === 'fails') return [...expectationSentence(model, worst, true), ...others(model, worst)];
  const objection = judges[0];
  if (objection?.status === 'objects') {
    return [`The judge “${objection.name}” objects`, ...(where(model, objection).length > 0 ? [' to the run', ...where(model, objection)] : []),
      `: ${(objection.text ?? '').replace(/\.$/, '')}.`, ...others(model, objection)];
  }
  if (worst?.status === 'undecided') return [...expectationSentence(model, worst, false), ...others(model, worst)];
  if (result.partial) return [`It is not decided: the run was stopped after ${plural(result.replications ?? 0, 'replication')}.`];
  if (result.imprecise) {
    return [`It is not decided: “${model.metric(result.headline[0]).title}” is not known within ${number(100 * result.precision)} % in every row.`];
  }
  return result.verdict && result.verdict !== 'holds' ? [`It ${result.verdict === 'fails' ? 'fails' : 'is not decided'}.`] : null;
}

// For tests: the sentence as plain text.
export const plain = (parts) => (parts ?? []).map((part) =>
  (typeof part === 'string' ? part : part.code !== undefined ? `\`${part.code}\`` : part.figure)).join('');
