// The charts of a report, in the order of the page.
import { element, section } from '../dom.js';
import { duration, plural } from '../format.js';
import { fewestPoints, kneeRule } from '../knee.js';
import { definition, definitions, seriesTerms } from '../terms.js';
import { mountChart } from './mount.js';
import { drawnColumns, seriesChart } from './series.js';
import { sweepChart } from './sweep.js';
import { waitChart } from './waits.js';
import { windowChart } from './windows.js';
import { workerChart } from './workers.js';

const chartGrid = (charts, selection) =>
  element('div', { class: charts.length > 1 ? 'charts' : 'charts single' }, charts.map((chart) => mountChart(chart, selection)));

function faultList(model) {
  if (model.faults.length === 0) return null;
  return element('ol', { class: 'faults', 'aria-label': 'faults' }, model.faults.map((fault) => {
    const moment = fault.to_us > fault.from_us ? `from ${duration(fault.from_us)} to ${duration(fault.to_us)}` : `at ${duration(fault.from_us)}`;
    return element('li', {}, `${fault.text ?? fault.kind} (${moment})`, definition(fault.kind, fault.help));
  }));
}

const firstOnly = (model) => (model.result.replications > 1
  ? `The charts show the first of ${plural(model.result.replications, 'replication')} alone.` : 'The charts show the one replication.');

function seriesNote(model) {
  const parts = [firstOnly(model)];
  if (model.warmups()[1] > 0) parts.push('The grey band is the warm-up, which no figure counts.');
  if (model.faults.length > 0) parts.push('Shaded bands and dashed lines are the faults, numbered as in this list:');
  return element('p', { class: 'note' }, parts.join(' '));
}

function seriesSection(model, selection) {
  const columns = drawnColumns(model.result.rows);
  if (columns.length === 0) return null;
  return section('series', 'Over time', seriesNote(model), faultList(model),
    chartGrid(model.variants.map((variant) => seriesChart(model, variant)), selection),
    definitions(columns.map((column) => [column, ...seriesTerms[column]])));
}

function sweepSection(model, selection) {
  if (!model.result.sweep) return null;
  const { parameter, values } = model.axis();
  return section('sweep', `Over ${parameter}`,
    definitions([[parameter, parameter, model.result.parameter_help?.[parameter]]]),
    element('p', { class: 'note' }, [model.result.replications > 1 ? 'Bands are the intervals over the replications.' : '',
      values.length >= fewestPoints ? kneeRule : ''].join(' ').trim()),
    chartGrid(model.result.headline.map((metric) => sweepChart(model, metric)), selection));
}

export function chartSections(model, selection) {
  return [
    sweepSection(model, selection),
    seriesSection(model, selection),
    section('distribution', 'Waits, windows and workers', element('p', { class: 'note' }, firstOnly(model)),
      chartGrid([waitChart(model), windowChart(model), workerChart(model)], selection)),
  ].filter(Boolean);
}
