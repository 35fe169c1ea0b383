import { element, section } from '../dom.js';
import { figure, interval } from '../format.js';
import { statusBadge } from '../status.js';
import { table } from '../table.js';

function allowed({ least, most }, unit) {
  const parts = [];
  if (Number.isFinite(least)) parts.push(`≥ ${figure(least, unit)}`);
  if (Number.isFinite(most)) parts.push(`≤ ${figure(most, unit)}`);
  return parts.join(' and ');
}

function expectationRow(model, expectation) {
  const { unit } = model.metric(expectation.metric);
  const range = Number.isFinite(expectation.value) ? interval(expectation.low, expectation.high, unit) : '';
  return [
    statusBadge(expectation.status),
    expectation.text ?? '',
    model.place(expectation.variant, expectation.point) || '–',
    { content: element('span', {}, element('span', { class: 'value' }, figure(expectation.value, unit)),
        range ? element('span', { class: 'interval' }, range) : null) },
    allowed(expectation, unit),
  ];
}

export function expectationSection(model) {
  const content = model.expectations.length === 0
    ? element('p', { class: 'absent' }, 'The scenario expects nothing.')
    : table('What the scenario expects, and what was measured', ['status', 'expectation', 'where', 'measured', 'allowed'],
        model.expectations.map((expectation) => expectationRow(model, expectation)), { className: 'prose' });
  return section('expectations', 'Expectations', content);
}

export function judgeSection(model) {
  const content = model.judges.length === 0
    ? element('p', { class: 'absent' }, 'No judge watched this run.')
    : table('Judges watch every event of a run', ['status', 'judge', 'where', 'what it says'],
        model.judges.map((judge) => [statusBadge(judge.status), judge.name ?? '',
          model.place(judge.variant, judge.point) || '–', judge.text ?? '']), { className: 'prose' });
  return section('judges', 'Judges', content);
}
