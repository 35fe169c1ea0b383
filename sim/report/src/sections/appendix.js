import { element, section } from '../dom.js';
import { table } from '../table.js';
import { definition } from '../terms.js';
import { allFigures } from './figures.js';

function command({ command: given, scenario, sweep, seed, replications, planned_replications: planned }) {
  if (given) return given;
  const parts = ['sluice-sim', sweep ? 'sweep' : 'run', scenario];
  if (seed !== undefined) parts.push('--seed', String(seed));
  if (replications !== undefined) parts.push('--replications', String(planned ?? replications));
  return parts.join(' ');
}

function parameters(model) {
  const entries = Object.entries(model.result.parameters ?? {});
  if (entries.length === 0) return null;
  return section('parameters', 'Parameters', table('Every parameter of the run; variants and sweeps have values of their own',
    ['parameter', 'value', 'meaning'],
    entries.map(([name, value]) => [name, String(value), definition(name, model.result.parameter_help?.[name]) ?? '']), { className: 'prose' }));
}

function traces(model) {
  const rows = model.result.rows.filter((row) => row.trace);
  if (rows.length === 0) return null;
  const swept = Boolean(model.result.sweep);
  return [
    element('p', { class: 'note' }, 'A trace hash is a number made of every event of the first replication, in their order: two runs with one ' +
      'hash are the same run. One seed gives one hash, on every compiler and machine.'),
    table('Trace hashes', ['variant', ...(swept ? [model.result.sweep.parameter] : []), 'trace hash'],
      rows.map((row) => [model.name(row.variant), ...(swept ? [String(model.result.sweep.values[row.point])] : []),
        element('code', {}, row.trace)])),
  ];
}

export function appendix(model) {
  const { result } = model;
  const notes = result.notes ?? [];
  return [
    allFigures(model),
    parameters(model),
    section('repeat', 'How to repeat this',
      element('p', {}, result.revision ? `With revision ${result.revision} of Sluice:` : 'With the same revision of Sluice:'),
      element('pre', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'command' },
        element('code', {}, command(result))),
      traces(model)),
    notes.length === 0 ? null : section('notes', 'What is not modelled',
      element('ul', {}, notes.map((note) => element('li', {}, String(note))))),
  ];
}
