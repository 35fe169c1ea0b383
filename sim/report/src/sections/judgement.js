import { bounds, measured } from '../answer.js';
import { element, section } from '../dom.js';
import { plural } from '../format.js';
import { statusBadge } from '../status.js';
import { table } from '../table.js';
import { definition, definitions, statusTerms } from '../terms.js';

function expectationRow(model, expectation) {
  const { name, unit, help } = model.metric(expectation.metric);
  const { value, range } = measured(expectation, unit);
  return [
    statusBadge(expectation.status),
    element('span', {}, expectation.text ?? '', definition(name, help)),
    model.place(expectation.variant, expectation.point) || '–',
    { content: element('span', {}, element('span', { class: 'value' }, value),
        Number.isFinite(expectation.value) && range ? element('span', { class: 'interval' }, range) : null) },
    bounds(expectation, unit),
  ];
}

const statusDefinitions = (entries) => definitions([...new Set(entries.map(({ status }) => status))]
  .map((status) => [status, status, statusTerms[status]]));

// A line that opens.
const folded = (line, isOpen, ...content) => element('details', { class: 'fold', open: isOpen }, element('summary', {}, line), content);

// What fails or is not decided is in sight; what holds is a line that opens.
export function expectationSection(model) {
  const { expectations } = model;
  if (expectations.length === 0) return null;
  const rows = (entries) => table('What the scenario expects, and what was measured', ['status', 'expectation', 'where', 'measured', 'expected'],
    entries.map((expectation) => expectationRow(model, expectation)), { className: 'prose' });
  const held = expectations.filter(({ status }) => status === 'holds');
  const rest = expectations.filter(({ status }) => status !== 'holds');
  return section('expectations', 'Expectations',
    rest.length > 0 ? rows(rest) : null,
    held.length > 0 ? folded(`${plural(held.length, 'expectation')} ${held.length === 1 ? 'holds' : 'hold'}`, false, rows(held)) : null,
    statusDefinitions(expectations));
}

function judgeRow(model, { name = '', status, variant, point, text }) {
  return [statusBadge(status),
    element('span', {}, name, definition(name, model.result.judge_help?.[name])),
    model.place(variant, point) || '–', text ?? ''];
}

export function judgeSection(model) {
  const { judges } = model;
  if (judges.length === 0) return null;
  const objections = judges.filter(({ status }) => status === 'objects').length;
  const kinds = new Set(judges.map(({ name }) => name)).size;
  const line = `${plural(judges.length, 'judgement')} of ${plural(kinds, 'judge')}: ` +
    (objections === 0 ? 'none objects' : `${objections} ${objections === 1 ? 'objects' : 'object'}`);
  return section('judges', 'Judges', folded(line, objections > 0,
    element('p', { class: 'note' }, 'A judge looks at every event of every replication, for a rule that no run may break.'),
    table('What the judges say', ['status', 'judge', 'where', 'what it says'], judges.map((judge) => judgeRow(model, judge)), { className: 'prose' }),
    statusDefinitions(judges)));
}
