import { element } from '../dom.js';

// A legend in HTML: it wraps, is read aloud and worked from the keyboard. A button hides or shows its series.
// An item is {name, color, symbol, dash, help}; `hidden` is the set of names that are switched off.
export function legend(items, hidden, onToggle) {
  const buttons = items.map((item) => {
    const button = element('button', {
      type: 'button', 'aria-pressed': String(!hidden.has(item.name)), 'data-series': item.name, 'data-color': item.color, title: item.help,
      onclick: () => {
        if (!hidden.delete(item.name)) hidden.add(item.name);
        button.setAttribute('aria-pressed', String(!hidden.has(item.name)));
        onToggle();
      },
    }, swatch(item), item.name);
    return button;
  });
  return element('div', { class: 'legend', role: 'group', 'aria-label': 'series shown' }, buttons);
}

const shapes = {
  circle: ['circle', { cx: 14, cy: 6, r: 4 }],
  rect: ['rect', { x: 10.5, y: 2.5, width: 7, height: 7 }],
  triangle: ['path', { d: 'M14 1.5 L18.5 10 L9.5 10 Z' }],
  diamond: ['path', { d: 'M14 1 L19 6 L14 11 L9 6 Z' }],
};

function swatch({ color, symbol, dash, band }) {
  const svg = svgElement('svg', { width: 28, height: 12, viewBox: '0 0 28 12', 'aria-hidden': 'true' });
  if (band) {
    svg.append(svgElement('rect', { x: 2, y: 1, width: 24, height: 10, fill: color }));
    return svg;
  }
  svg.append(svgElement('line', { x1: 0, x2: 28, y1: 6, y2: 6, stroke: color, 'stroke-width': 2,
    'stroke-dasharray': Array.isArray(dash) ? dash.join(' ') : dash === 'dashed' ? '5 3' : 'none' }));
  if (symbol && symbol !== 'none') svg.append(symbolShape(symbol, color));
  return svg;
}

function symbolShape(symbol, color) {
  const empty = symbol.startsWith('empty');
  const [tag, geometry] = shapes[(empty ? symbol.slice(5) : symbol).toLowerCase()];
  return svgElement(tag, { ...geometry, stroke: color, 'stroke-width': 1.5, fill: empty ? 'var(--surface)' : color });
}

function svgElement(tag, attributes) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  return node;
}
