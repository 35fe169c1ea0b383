import { figuresSentence, verdictSentence } from '../answer.js';
import { element } from '../dom.js';
import { duration, percent, plural } from '../format.js';
import { statusBadge } from '../status.js';

export function head(model, selection) {
  const { result } = model;
  return element('header', {},
    element('p', { class: 'kind' }, 'sluice-sim report'),
    element('h1', {}, result.scenario),
    result.question ? element('p', { class: 'question' }, result.question) : null,
    answer(model, selection),
    partialBanner(result),
    element('div', { class: 'verdict' }, statusBadge(result.verdict ?? 'undecided', 'large'),
      element('span', {}, reason(model))),
    paragraphs(result.description),
    facts(model));
}

// What fails, and what the figures of the chosen point say.
function answer(model, selection) {
  const verdict = verdictSentence(model);
  const said = element('span', { 'data-answer': 'figures' });
  const draw = () => said.replaceChildren(...nodesOf(figuresSentence(model, selection.point)));
  selection.onChange(draw);
  draw();
  const parts = [verdict && element('span', { 'data-answer': 'verdict' }, nodesOf(verdict)), ' ', said].filter(Boolean);
  return verdict || said.textContent !== '' ? element('p', { class: model.result.verdict === 'fails' ? 'answer' : 'answer open' }, parts) : null;
}

function nodesOf(parts) {
  return (parts ?? []).map((part) => {
    if (typeof part === 'string') return part;
    if (part.code !== undefined) return element('code', {}, part.code);
    return element('b', { 'data-said': part.metric, 'data-variant': part.variant, 'data-point': String(part.point) }, part.figure);
  });
}

function paragraphs(text) {
  return (text ?? '').split(/\n\s*\n/).filter((part) => part.trim() !== '').map((part) => element('p', {}, part.trim()));
}

function partialBanner(result) {
  if (!result.partial) return null;
  const planned = result.planned_replications;
  const done = Number.isFinite(planned)
    ? `${result.replications} of ${plural(planned, 'replication')}`
    : plural(result.replications ?? 0, 'replication');
  return element('p', { class: 'banner', role: 'note' },
    `Partial: stopped after ${done}. The figures are of these alone.`);
}

const count = (entries, status) => entries.filter((entry) => entry.status === status).length;

function reason({ expectations, judges }) {
  if (expectations.length + judges.length === 0) return 'This run has no expectations and no judges.';
  const parts = [];
  const fails = count(expectations, 'fails');
  const open = count(expectations, 'undecided');
  const objections = count(judges, 'objects');
  const unmet = count(judges, 'not met');
  if (fails > 0) parts.push(`${fails} of ${plural(expectations.length, 'expectation')} ${fails === 1 ? 'fails' : 'fail'}`);
  if (open > 0) parts.push(`${open} of ${plural(expectations.length, 'expectation')} ${open === 1 ? 'is' : 'are'} undecided`);
  if (fails + open === 0 && expectations.length > 0) parts.push(`${plural(expectations.length, 'expectation')} met`);
  if (objections > 0) parts.push(`${objections} of ${plural(judges.length, 'judgement')} ${objections === 1 ? 'objects' : 'object'}`);
  if (unmet > 0) parts.push(`${unmet} of ${plural(judges.length, 'judgement')} had nothing to judge`);
  if (objections === 0 && judges.length > 0) parts.push('no judge objects');
  return `${parts.join('; ')}.`;
}

function warmupFact(model) {
  const [shortest, longest] = model.warmups();
  if (!(longest > 0)) return null;
  const first = shortest === longest ? duration(longest) : `${duration(shortest)} to ${duration(longest)}`;
  const rule = model.result.warmup_rule;
  return [`warm-up of ${first}`, `what comes in it counts in no figure${rule ? `; its length was found by ${rule}, the cut that leaves the least standard error` : ''}`];
}

// How the run was made; each fact says what its words mean.
function facts(model) {
  const { result } = model;
  const given = Number.isFinite(result.confidence) ? percent(100 * result.confidence) : null;
  const entries = [
    [plural(result.replications ?? 1, 'replication'), 'runs that differ in their random draws alone'],
    [`${duration(result.duration_us)} of virtual time each`, 'the time that passes in the simulated world'],
    warmupFact(model),
    given && result.replications !== 1 ? [`${given} intervals`, `in ${given} of such experiments, the interval holds the true mean`] : null,
    result.seed !== undefined ? [`seed ${result.seed}`, 'what all random draws are made from: the same seed repeats the run'] : null,
    result.revision ? [`revision ${result.revision}`, 'the version of Sluice that ran'] : null,
  ];
  return element('ul', { class: 'facts' }, entries.filter(Boolean).map(([fact, help]) =>
    element('li', {}, element('abbr', { title: help }, fact), ` (${help})`)));
}
