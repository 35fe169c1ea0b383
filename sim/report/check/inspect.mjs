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
