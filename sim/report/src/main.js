// Draws the report of the JSON that the page carries.
import { mounted } from './charts/mount.js';
import { chartSections } from './charts/section.js';
import { element } from './dom.js';
import { Model } from './model.js';
import { ReadError, readResult } from './read.js';
import { appendix } from './sections/appendix.js';
import { headlineSection } from './sections/figures.js';
import { head } from './sections/head.js';
import { expectationSection, judgeSection } from './sections/judgement.js';
import { Selection } from './selection.js';

function picker(model, selection) {
  const { sweep } = model.result;
  if (!sweep) return null;
  const options = sweep.values.map((value, index) =>
    element('option', { value: String(index), selected: index === selection.point }, String(value)));
  const list = element('select', { id: 'point', onchange: () => selection.select(Number(list.value)) }, options);
  return element('div', { class: 'picker' }, element('label', { for: 'point' }, model.isGrid() ? 'Point:' : `${sweep.parameter} =`), list,
    element('span', {}, 'for the answer, the figures and the charts'));
}

function report(result) {
  const model = new Model(result);
  const selection = new Selection(model.firstPoint());
  document.title = `${result.scenario}: ${result.verdict ?? 'undecided'} · sluice-sim report`;
  return [head(model, selection), picker(model, selection), headlineSection(model, selection), expectationSection(model),
    ...chartSections(model, selection), judgeSection(model), ...appendix(model)];
}

function message(title, detail) {
  document.title = 'sluice-sim report';
  return [element('h1', {}, title), element('p', { class: 'error', role: 'alert' }, detail)];
}

function draw() {
  const page = document.getElementById('page');
  try {
    const result = readResult(document.getElementById('result')?.textContent ?? '');
    page.replaceChildren(...report(result).filter(Boolean));
  } catch (error) {
    const expected = error instanceof ReadError;
    page.replaceChildren(...message(expected ? error.title : 'This report could not be drawn', error.message));
    if (!expected) console.error(error);
  }
}

window.sluiceReport = { charts: mounted };
draw();
