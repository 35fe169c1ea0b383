import { element } from './dom.js';

// A table that scrolls inside its frame when the page is narrower than the table.
// `columns` are texts; each row is an array of texts, nodes or {content, attributes}. The first column heads its row.
export function table(caption, columns, rows, { numeric = false, className = '' } = {}) {
  const head = element('tr', {}, columns.map((column) => element('th', { scope: 'col' }, column)));
  const body = rows.map((row) => element('tr', {}, row.map((entry, index) => cell(entry, index === 0))));
  const content = element('table', { class: `${className} ${numeric ? 'numeric' : ''}`.trim() },
    element('caption', {}, caption), element('thead', {}, head), element('tbody', {}, body));
  return element('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption }, content);
}

function cell(entry, isHead) {
  const plain = typeof entry === 'string' || entry instanceof Node;
  const { content, attributes = {} } = plain ? { content: entry } : entry;
  return isHead ? element('th', { scope: 'row', ...attributes }, content) : element('td', attributes, content);
}
