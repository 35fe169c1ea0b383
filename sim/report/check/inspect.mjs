// What runs inside the page: each function is sent there, so it uses nothing from outside of itself.

// Each visible chart: its series by the legend, and which of their colours have marks with an extent.
export function charts() {
  return [...document.querySelectorAll('figure.chart')].filter((figure) => !figure.hidden).map((figure) => {
    const marks = [...figure.querySelectorAll('.plot svg path, .plot svg polyline, .plot svg rect')];
    const drawn = new Set();
    for (const mark of marks) {
      const { width, height } = mark.getBoundingClientRect();
      if (width + height < 2) continue;
      drawn.add(mark.getAttribute('stroke'));
      drawn.add(mark.getAttribute('fill'));
    }
    return {
      name: figure.dataset.chart,
      title: figure.querySelector('h3').textContent,
      label: figure.querySelector('.plot').getAttribute('aria-label'),
      caption: figure.querySelector('figcaption')?.textContent ?? '',
      error: figure.querySelector('.error')?.textContent ?? null,
      marks: marks.length,
      series: [...figure.querySelectorAll('.legend button')].map((button) => ({
        name: button.dataset.series, drawn: drawn.has(button.dataset.color),
      })),
    };
  });
}

// Texts of charts that overlap each other or leave their chart.
export function textTroubles() {
  const troubles = [];
  for (const figure of document.querySelectorAll('figure.chart')) {
    const svg = figure.querySelector('.plot svg');
    if (figure.hidden || !svg) continue;
    const frame = figure.querySelector('.plot').getBoundingClientRect();
    const texts = [...svg.querySelectorAll('text')].map((node) => ({ text: node.textContent, box: node.getBoundingClientRect() }))
      .filter(({ text }) => text.trim() !== '');
    texts.forEach(({ text, box }, index) => {
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1) {
        troubles.push(`${figure.dataset.chart}: '${text}' leaves the chart`);
      }
      for (const other of texts.slice(index + 1)) {
        const wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
        const high = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
        if (wide > 1 && high > 3) troubles.push(`${figure.dataset.chart}: '${text}' overlaps '${other.text}'`);
      }
    });
  }
  return troubles;
}

// How far the page is wider than its window, with the elements that stick out of it.
export function overflow() {
  const width = document.documentElement.clientWidth;
  const culprits = [...document.querySelectorAll('body *')].filter((node) => !node.closest('.scroll, .plot svg') &&
    node.getBoundingClientRect().right > width + 1).map((node) => `${node.tagName}.${node.className}`);
  return { by: document.documentElement.scrollWidth - width, culprits: culprits.slice(0, 5) };
}

// The cells that state where their figure stands in the JSON.
export function cells() {
  return [...document.querySelectorAll('td[data-variant]')].map((cell) => ({
    ...cell.dataset,
    text: (cell.querySelector('.value') ?? cell).textContent,
    interval: cell.querySelector('.interval')?.textContent ?? '',
    headline: Boolean(cell.closest('#figures')),
  }));
}

// The points that the charts draw, by chart and series.
export function plotted() {
  return Object.fromEntries([...window.sluiceReport.charts].map(([name, chart]) => [name,
    chart.getOption().series.map(({ type, name: series, data }) => ({ type, name: series,
      data: data.map((entry) => (Array.isArray(entry) || entry === null || typeof entry === 'number' ? entry : { ...entry, label: undefined })) }))]));
}

// The answer on top: its two parts as text, the variants that it names, and the figures with their places in the JSON.
export function answer() {
  const paragraph = document.querySelector('header .answer');
  if (!paragraph) return null;
  const part = (name) => {
    const node = paragraph.querySelector(`[data-answer="${name}"]`);
    return node && {
      text: node.textContent,
      names: [...node.querySelectorAll('code')].map((code) => code.textContent),
      said: [...node.querySelectorAll('[data-said]')].map((said) => ({ ...said.dataset, metric: said.dataset.said, text: said.textContent })),
    };
  };
  const follows = (node) => Boolean(node && paragraph.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_FOLLOWING);
  return { verdict: part('verdict'), figures: part('figures'), isOnTop: follows(document.querySelector('header .verdict')) &&
    paragraph.previousElementSibling?.matches('.question, h1') };
}

// The sections in their order, with the statuses that each shows in the order of its rows, and the rows of the figures.
export function order() {
  const visible = (node) => !node.hidden;
  return {
    sections: [...document.querySelectorAll('main > section')].filter(visible).map((node) => node.id),
    statuses: Object.fromEntries(['expectations', 'judges'].map((id) => [id,
      [...document.querySelectorAll(`#${id} td [data-status], #${id} th [data-status]`)].map((badge) => badge.dataset.status)])),
    rows: [...document.querySelectorAll('#figures [data-row]')].map((cell) => cell.dataset.row),
    judges: [...document.querySelectorAll('#judges')].map((node) => ({
      folds: node.querySelectorAll(':scope > details').length,
      isOpen: Boolean(node.querySelector(':scope > details[open]')),
      line: node.querySelector(':scope > details > summary')?.textContent ?? '',
      besides: [...node.children].filter((child) => !child.matches('h2, details')).length,
    }))[0] ?? null,
  };
}

// Every definition by section; and terms that have none: an abbreviation without a text.
export function definitions() {
  const texts = {};
  for (const node of document.querySelectorAll('main [data-define]')) {
    const id = node.closest('section')?.id ?? 'header';
    ((texts[id] ??= {})[node.dataset.define] ??= []).push(node.textContent.trim());
  }
  return {
    texts,
    bare: [...document.querySelectorAll('main abbr')].filter((node) => !(node.getAttribute('title') ?? '').trim()).map((node) => node.textContent),
    legends: [...document.querySelectorAll('#series .legend button')].filter((node) => !node.title).map((node) => node.textContent),
  };
}

// What stands on the page and holds nothing: sections with only a heading, tables without rows, charts whose panels have
// no value but zero.
export function empties() {
  const found = [];
  for (const node of document.querySelectorAll('main > section')) {
    if (!node.hidden && node.querySelectorAll('figure.chart:not([hidden]), [data-instead]:not([hidden]), table, ul, pre').length === 0) {
      found.push(`section ${node.id}`);
    }
    if (node.hidden !== (getComputedStyle(node).display === 'none')) found.push(`section ${node.id} is half hidden`);
  }
  for (const node of document.querySelectorAll('table')) if (node.tBodies[0].rows.length === 0) found.push(`table '${node.caption.textContent}'`);
  for (const [name, chart] of window.sluiceReport.charts) {
    if (document.querySelector(`figure[data-chart="${CSS.escape(name)}"]`).hidden) continue;
    const panels = new Map();
    for (const { xAxisIndex = 0, type, data } of chart.getOption().series) {
      if (type === 'custom') continue;
      const values = data.map((entry) => entry?.us ?? entry?.value?.[1] ?? entry?.value ?? entry?.[1] ?? entry);
      panels.set(xAxisIndex, (panels.get(xAxisIndex) ?? false) || values.some((value) => Number.isFinite(value) && value !== 0));
    }
    for (const [index, holds] of panels) if (!holds) found.push(`panel ${index} of chart ${name}`);
  }
  return found;
}
