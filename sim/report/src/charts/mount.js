import { element } from '../dom.js';
import { createChart } from './echarts.js';
import { legend } from './legend.js';
import { currentLook } from './look.js';

// All charts of the page, by name, for the checks.
export const mounted = new Map();

const printWidth = 680;

// Puts a chart on the page and keeps it up to date: with the sweep point, the width, the colour scheme and print.
// A chart is an object with
//   id, title        what the figure is called, in the page and in data-chart
//   draw(point, look) {option, height, caption, legend, data}; a sentence that says all there is to say in place of a
//                    picture, as "No job waits."; or null when there is no data
export function mountChart(chart, selection) {
  const frame = element('div', { class: 'plot', role: 'img' });
  const keys = element('div');
  const caption = element('figcaption');
  const data = element('div');
  const figure = element('figure', { class: 'chart', 'data-chart': chart.id },
    element('h3', {}, chart.title), keys, frame, caption, data);
  const instead = element('p', { class: 'note', 'data-instead': chart.id, hidden: true });
  const hidden = new Set();
  let instance;

  const show = (drawn) => {
    const isSentence = typeof drawn === 'string';
    figure.hidden = isSentence || drawn === null;
    instead.hidden = !isSentence;
    instead.textContent = isSentence ? drawn : '';
    const around = figure.closest('section');
    if (around) around.hidden = ![...around.querySelectorAll('figure.chart, [data-instead]')].some((node) => !node.hidden);
  };

  // Built anew only when it changes, so that the button in use keeps the focus.
  const showLegend = (items) => {
    const state = JSON.stringify(items);
    if (keys.dataset.state === state) return;
    keys.dataset.state = state;
    keys.replaceChildren(...(items.length > 0 ? [legend(items, hidden, update)] : []));
  };

  const update = () => {
    show({});
    const printing = document.documentElement.classList.contains('printing');
    const width = printing ? printWidth : frame.clientWidth;
    if (width === 0) return;
    const look = currentLook(width, printing);
    const drawn = chart.draw(selection.point, look);
    show(drawn);
    if (drawn === null || typeof drawn === 'string') return;
    const size = { width, height: drawn.height };
    if (instance) instance.resize(size);
    else instance = createChart(frame, size);
    mounted.set(chart.id, instance);
    const selected = Object.fromEntries([...hidden].map((name) => [name, false]));
    instance.setOption({ ...drawn.option, legend: { show: false, selected } }, true);
    showLegend(drawn.legend ?? []);
    caption.textContent = drawn.caption;
    data.replaceChildren(...(drawn.data ? [dataTable(drawn.data, data)] : []));
  };

  const safely = () => {
    try {
      update();
    } catch (error) {
      figure.replaceChildren(element('h3', {}, chart.title),
        element('p', { class: 'error', role: 'alert' }, `This chart could not be drawn: ${error.message}`));
      console.error(error);
    }
  };

  selection.onChange(safely);
  watch(frame, safely);
  return [figure, instead];
}

// The chart's numbers as a table to unfold, which stays unfolded when the chart is drawn again.
function dataTable(content, before) {
  const open = Boolean(before.querySelector('details[open]'));
  return element('details', { open }, element('summary', {}, 'Numbers of this chart'), content);
}

function watch(frame, update) {
  let width = -1;
  new ResizeObserver(() => {
    if (frame.clientWidth === 0 || frame.clientWidth === width) return;
    width = frame.clientWidth;
    update();
  }).observe(frame);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', update);
  const print = (printing) => () => {
    document.documentElement.classList.toggle('printing', printing);
    update();
  };
  addEventListener('beforeprint', print(true));
  addEventListener('afterprint', print(false));
}
