import { element } from './dom.js';
import { statusTerms } from './terms.js';

// Statuses of verdicts, expectations and judges: a sign, a word and a colour, so that none depends on colour alone.
const known = {
  holds: ['good', '✓'],
  fails: ['bad', '✗'],
  objects: ['bad', '✗'],
  undecided: ['open', '?'],
  'not met': ['open', '○'],
};

export function statusBadge(status, className = '') {
  const [kind, sign] = known[status] ?? ['open', '?'];
  return element('span', { class: `badge ${kind} ${className}`.trim(), 'data-status': status, title: statusTerms[status] },
    element('span', { 'aria-hidden': 'true' }, sign), ` ${status}`);
}
