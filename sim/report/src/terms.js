// Terms with their definitions, which are both a tooltip and a text in sight.
import { element } from './dom.js';

// A term whose definition stands below it, or in the definitions() of its section.
export const term = (title, help) => element('abbr', { title: help }, title);

// The definition in sight; the name tells the checks what it is of.
export const definition = (name, help) => (help ? element('span', { class: 'help', 'data-define': name }, help) : null);

// `entries` are [name, title, help].
export function definitions(entries) {
  const known = entries.filter(([, , help]) => help);
  if (known.length === 0) return null;
  return element('dl', { class: 'terms' }, known.map(([name, title, help]) =>
    element('div', {}, element('dt', {}, title), element('dd', { 'data-define': name }, help))));
}

export const seriesTerms = {
  offered: ['offered', 'Jobs that come; a job is work that needs one successful call.'],
  admitted: ['admitted', 'Calls sent to the API, repeated ones too.'],
  ok: ['ok', 'Calls that succeed: the goodput.'],
  refused: ['refused', 'Calls that the API answers with 429 (too many requests).'],
  waiting: ['waiting', 'Jobs that wait for their call to be sent.'],
  unfinished: ['unfinished', 'Jobs that have come and are not done: those that wait, and those whose call is under way.'],
  store_operations: ['store operations', 'Operations that the limiter asks of its store, as Redis.'],
};

export const statusTerms = {
  holds: 'The whole interval lies within what is expected; of a judge: it has nothing to object to.',
  fails: 'The whole interval lies outside of what is expected.',
  undecided: 'The interval holds values inside and outside of what is expected, or the figure is not known.',
  objects: 'A judge found a rule broken.',
  'not met': 'What the judge looks at did not happen, so it could not judge.',
};
