// The charts of a report, in the order of the page.
import { element, section } from '../dom.js';
import { duration } from '../format.js';
import { kneeRule } from '../knee.js';
import { mountChart } from './mount.js';
import { seriesChart } from './series.js';
import { sweepChart } from './sweep.js';
import { waitChart } from './waits.js';
import { windowChart } from './windows.js';
import { workerChart } from './workers.js';

const chartGrid = (charts, selection) =>
  element('div', { class: charts.length > 1 ? 'charts' : 'charts single' }, charts.map((chart) => mountChart(chart, selection)));

function faultList(model) {
  if (model.faults.length === 0) return element('p', { class: 'absent' }, 'The run has no faults.');
  return element('ol', { class: 'faults', 'aria-label': 'faults' }, model.faults.map((fault) => {
    const moment = fault.to_us > fault.from_us ? `from ${duration(fault.from_us)} to ${duration(fault.to_us)}` : `at ${duration(fault.from_us)}`;
    return element('li', {}, `${fault.text ?? fault.kind} (${moment})`);
  }));
}

function seriesNote(model) {
  if (!model.result.rows.some((row) => row.series)) return null;
  const parts = ['The charts show the first replication.'];
  if (model.faults.length > 0) parts.push('Shaded bands and dashed lines are the faults, numbered as in this list:');
  if (model.warmups()[1] > 0) parts.unshift('The grey band is the warm-up, which no figure counts.');
  return element('p', { class: 'facts' }, parts.join(' '));
}

export function chartSections(model, selection) {
  const variants = model.variants.length > 0 ? model.variants : [''];
  const metrics = model.result.headline;
  return [
    section('series', 'Over time', seriesNote(model), faultList(model),
      chartGrid(variants.map((variant) => seriesChart(model, variant)), selection)),
    section('distribution', 'Waits, windows and workers',
      chartGrid([waitChart(model), windowChart(model), workerChart(model)], selection)),
    model.result.sweep
      ? section('sweep', `Over ${model.axis().parameter}`, element('p', { class: 'facts' },
          `Bands are the intervals over the replications. ${kneeRule}`),
        chartGrid(metrics.map((metric) => sweepChart(model, metric)), selection))
      : section('sweep', 'Sweep', element('p', { class: 'absent', 'data-absent': 'sweep' }, 'No sweep: the run has one set of parameters.')),
  ];
}
