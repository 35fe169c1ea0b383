import { element } from '../dom.js';
import { duration, percent, plural } from '../format.js';
import { statusBadge } from '../status.js';

export function head(model) {
  const { result } = model;
  return element('header', {},
    element('p', { class: 'kind' }, 'sluice-sim report'),
    element('h1', {}, result.scenario),
    result.question ? element('p', { class: 'question' }, result.question) : null,
    partialBanner(result),
    element('div', { class: 'verdict' }, statusBadge(result.verdict ?? 'undecided', 'large'),
      element('span', {}, reason(model))),
    paragraphs(result.description),
    element('p', { class: 'facts' }, facts(model)));
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

function warmupText(model) {
  const [shortest, longest] = model.warmups();
  if (!(longest > 0)) return null;
  const first = shortest === longest ? duration(longest) : `${duration(shortest)} to ${duration(longest)}`;
  return `the first ${first} are warm-up${model.result.warmup_rule ? ` by ${model.result.warmup_rule}` : ''}`;
}

function facts(model) {
  const { result } = model;
  const parts = [
    plural(result.replications ?? 1, 'replication'),
    `${duration(result.duration_us)} of virtual time each`,
    warmupText(model),
    Number.isFinite(result.confidence) ? `intervals at ${percent(result.confidence)} confidence` : null,
    result.seed !== undefined ? `seed ${result.seed}` : null,
    result.revision ? `revision ${result.revision}` : null,
  ];
  return parts.filter(Boolean).join(' · ');
}
