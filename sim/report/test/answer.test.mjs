import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bounds, figuresSentence, measured, plain, verdictSentence } from '../src/answer.js';
import { Model } from '../src/model.js';

const metrics = {
  refused: { title: 'calls answered 429', unit: '%', better: 'less', phrase: '{} of the calls are answered 429', help: 'h' },
  wait: { title: 'p99 of the wait', unit: 'ms', better: 'less', phrase: '99 % of the jobs wait at most {}', help: 'h' },
  goodput: { title: 'successful calls', unit: '/s', better: 'more', phrase: '{} calls a second succeed', help: 'h' },
  recovery: { title: 'time until the goodput is back', unit: 's', better: 'less', phrase: 'the goodput is back {} after the last fault', help: 'h' },
  cost: { title: 'store operations', unit: '', better: 'less', phrase: 'each call costs {} store operations', help: 'h' },
  crashes: { title: 'crashes', unit: '', better: '', phrase: '{} workers crash', help: 'h' },
};

// A number is a figure whose interval is a hundredth wide; a list is [value, low, high].
const figure = (entry) => (Array.isArray(entry) ? { value: entry[0], low: entry[1], high: entry[2] }
  : typeof entry === 'number' ? { value: entry, low: entry * 0.995, high: entry * 1.005 } : entry);

function model(variants, rest = {}) {
  const rows = Object.entries(variants).flatMap(([variant, points]) => [points].flat().map((figures, point) => ({
    variant, point, figures: Object.fromEntries(Object.entries(figures).map(([name, entry]) => [name, figure(entry)])),
  })));
  return new Model({ format: 2, scenario: 's', question: '', verdict: 'holds', replications: 8, metrics, rows, sweep: null,
    headline: Object.keys(rows[0]?.figures ?? {}), ...rest });
}

const said = (...given) => plain(figuresSentence(model(...given), given[2] ?? 0));

test('the best variant is told, and what the worst is worse in', () => {
  assert.equal(said({ none: { refused: 0, wait: 73_000 }, local: { refused: 0.15, wait: 2600 }, open: { refused: 4.25, wait: 1600 } },
    { question: 'Redis is away: how many 429s, and who waits?' }),
  'With `local`, 0.15 % of the calls are answered 429 and 99 % of the jobs wait at most 2.6 s; with `open`, 4.25 % of the calls are answered 429.');
});

test('less is better of what costs, and more of what is gained', () => {
  assert.equal(said({ a: { goodput: 90 }, b: { goodput: 45 } }), 'With `a`, 90 calls a second succeed; with `b`, 45 calls a second succeed.');
  assert.equal(said({ a: { wait: 90 }, b: { wait: 45 } }), 'With `b`, 99 % of the jobs wait at most 45 ms; with `a`, 99 % of the jobs wait at most 90 ms.');
  assert.equal(said({ a: { crashes: 9 }, b: { crashes: 1 } }), 'No variant differs from the others by more than its intervals: with `a`, 9 workers crash.');
});

test('the figures that the question asks for come before others, by which variants are not ranked', () => {
  const figures = { a: { cost: 1, refused: 20, wait: 10, goodput: 50 }, b: { cost: 9, refused: 0, wait: 10, goodput: 50 } };
  assert.match(said(figures, { question: 'How many are refused with 429?' }), /^With `b`, each call costs 9 store operations, 0 % of the calls .* wait .*; with `a`, 20 %/);
  assert.match(said(figures, { question: 'How much does it cost the store?' }), /^With `a`, .*; with `b`, each call costs 9/);
  assert.match(said(figures, { question: 'What then?' }), /^With `a`, each call costs 1 store operation, 20 % .*; with `b`, each call costs 9 store operations\.$/);
});

test('variants that are alike in what is asked are told apart by the rest of what is told', () => {
  const figures = { slow: { refused: 0, wait: 900 }, swift: { refused: 0, wait: 10 }, open: { refused: 40, wait: 5 } };
  assert.match(said(figures, { question: 'How many 429s?' }), /^With `swift`, .*; with `open`, 40 %/);
  assert.match(said({ swift: figures.swift, slow: figures.slow, open: figures.open }, { question: 'How many 429s?' }), /^With `swift`/);
});

test('a share that differs by a small part of a percent counts little', () => {
  const figures = { a: { refused: 0, wait: 900 }, b: { refused: 0.001, wait: 10 } };
  assert.match(said(figures, { question: 'How many 429s, and who waits?' }), /^With `b`, 0.001 % .*; with `a`, 99 % of the jobs wait at most 900 ms\.$/);
});

test('the worst variant is told in everything in which it is clearly worse, and else in what it is worst in', () => {
  assert.match(said({ a: { refused: 0, wait: 10, goodput: 100 }, b: { refused: 50, wait: 900, goodput: 95 } }),
    /; with `b`, 50 % of the calls are answered 429 and 99 % of the jobs wait at most 900 ms\.$/);
  assert.match(said({ a: { wait: 80, goodput: 100 }, b: { wait: 100, goodput: 95 } }), /; with `b`, 99 % of the jobs wait at most 100 ms\.$/);
});

test('what is asked for is told even if it stands behind the first figures', () => {
  assert.match(said({ '': { cost: 1, refused: 2, wait: 3, goodput: 4, recovery: 5 } }, { question: 'Does it come back?' }),
    /^Each call costs 1 store operation, 2 % .* and the goodput is back 5 s after the last fault\.$/);
});

test('a difference within the intervals is none', () => {
  const wide = (value) => [value, value - 5, value + 5];
  assert.equal(said({ a: { refused: wide(10) }, b: { refused: wide(19) } }),
    'No variant differs from the others by more than its intervals: with `a`, 10 % of the calls are answered 429.');
  assert.match(said({ a: { refused: wide(10) }, b: { refused: wide(21) } }), /^With `a`, .*; with `b`, 21 %/);
  // One replication has no intervals.
  assert.match(said({ a: { refused: [10, null, null] }, b: { refused: [12, null, null] } }), /^With `a`, .*; with `b`, 12 %/);
});

test('a variant that others are divided by is not the best one, if two are left', () => {
  const figures = { ideal: { wait: 1 }, shared: { wait: 10 }, alone: { wait: 100 } };
  const expectations = [{ metric: 'wait', variant: 'shared', of: 'ideal', status: 'holds', point: 0 }];
  assert.match(said(figures), /^With `ideal`/);
  assert.match(said(figures, { expectations }), /^With `shared`, .*; with `alone`/);
  assert.match(said({ ideal: { wait: 1 }, shared: { wait: 10 } }, { expectations }), /^With `ideal`, .*; with `shared`/);
});

test('what has not happened is more than the run was long, and the worst', () => {
  assert.equal(said({ blind: { recovery: { value: null, low: null, high: null, never: 3, after_s: 80 } }, budget: { recovery: 12 } }),
    'With `budget`, the goodput is back 12 s after the last fault; with `blind`, the goodput is back more than 1m 20s after the last fault.');
  assert.match(said({ a: { wait: { value: null } }, b: { wait: 5000 } }), /^With `b`, .*; with `a`, 99 % of the jobs wait at most an unknown number\.$/);
});

test('one row is told alone, and a sweep without variants by its ends', () => {
  assert.equal(said({ '': { refused: 1, wait: 20 } }), '1 % of the calls are answered 429 and 99 % of the jobs wait at most 20 ms.');
  const sweep = { parameter: 'limiter.hold', values: ['0s', '1s', '2s'] };
  assert.equal(said({ '': [{ cost: 1, wait: 20 }, { cost: 0.5, wait: 20 }, { cost: 0.04, wait: 20 }] }, { sweep }, 1),
    'At limiter.hold = 0s, each call costs 1 store operation and 99 % of the jobs wait at most 20 ms; at limiter.hold = 2s, each call costs 0.04 store operations.');
  assert.match(said({ '': [{ wait: 20 }, { wait: 20 }, { wait: 20 }] }, { sweep }), /at limiter.hold = 2s, no figure of these differs by more than its interval\.$/);
});

test('with variants and a sweep, the chosen point is told', () => {
  const sweep = { parameter: 'arrivals.load', values: ['1', '2'] };
  const variants = { a: [{ wait: 10 }, { wait: 90 }], b: [{ wait: 20 }, { wait: 30 }] };
  assert.match(said(variants, { sweep }, 0), /^At arrivals.load = 1, with `a`, .* 10 ms; with `b`, .* 20 ms\.$/);
  assert.match(said(variants, { sweep }, 1), /^At arrivals.load = 2, with `b`, .* 30 ms; with `a`, .* 90 ms\.$/);
});

test('without figures there is no sentence', () => {
  assert.equal(figuresSentence(model({}, { headline: ['wait'] }), 0), null);
  assert.equal(figuresSentence(model({ '': { wait: { value: null } } }), 0), null);
});

const verdict = (rest, figures = { a: { refused: 7, goodput: 90 }, b: { refused: 0, goodput: 99 } }) =>
  (plain(verdictSentence(model(figures, { verdict: 'fails', ...rest }))) || null);
const fails = { metric: 'refused', variant: 'a', point: 0, status: 'fails', value: 7, low: 6.5, high: 7.5, least: null, most: 5 };
const open = { metric: 'goodput', variant: 'a', point: 0, status: 'undecided', value: 90, low: 85, high: 95, least: 93, most: null };
const held = { ...fails, variant: 'b', status: 'holds' };

test('what fails is said first, with what is expected, and how many more do not hold', () => {
  assert.equal(verdict({ verdict: 'holds', expectations: [held] }), null);
  assert.equal(verdict({ expectations: [held, open, fails] }),
    'It fails with `a`: 7 % of the calls are answered 429 (interval 6.5 % to 7.5 %), where at most 5 % is expected. 1 expectation is undecided.');
  assert.equal(verdict({ expectations: [fails, { ...fails }, open, { ...open }] }).split('expected.')[1], ' 1 more expectation fails, 2 expectations are undecided.');
  assert.equal(verdict({ verdict: 'undecided', expectations: [held, open] }),
    'It is not decided with `a`: 90 calls a second succeed (interval 85/s to 95/s), where at least 93/s is expected.');
});

test('a quotient is told as one, and not in the unit of its figures', () => {
  assert.equal(verdict({ expectations: [{ ...open, status: 'fails', of: 'b', value: 0.909, low: 0.9, high: 0.92, least: 0.95 }] }),
    'It fails with `a`: “successful calls” is 0.909 times that of `b` (interval 0.9 to 0.92), where at least 0.95 times is expected.');
  assert.deepEqual(measured({ value: null, low: null, high: null, never: 2, after_s: 80 }, 's'), { value: '> 1m 20s', range: '' });
  assert.deepEqual(measured({ of: 'b', value: 0.5, low: 0.4, high: 0.6 }, '%'), { value: '0.5 times', range: '0.4 to 0.6' });
});

test('a failure at a point of a sweep names it, and one of what is not known says so', () => {
  const sweep = { parameter: 'load', values: ['1', '2'] };
  const figures = { a: [{ refused: 1 }, { refused: 7 }] };
  assert.match(verdict({ sweep, expectations: [{ ...fails, point: 1 }] }, figures), /^It fails with `a` at load = 2: 7 %/);
  assert.match(verdict({ expectations: [{ ...fails, metric: 'wait', value: null, low: null, high: null, status: 'undecided' }] }),
    /^It is not decided with `a`: “p99 of the wait” is not known, where at most 5 ms is expected\.$/);
});

test('a judge that objects is said, and stands behind what fails', () => {
  const judges = [{ name: 'time', status: 'holds', variant: 'a', point: 0, text: '' },
    { name: 'recovery', status: 'objects', variant: 'b', point: 0, text: 'the goodput is not back.' }];
  assert.equal(verdict({ judges }), 'The judge “recovery” objects to the run with `b`: the goodput is not back.');
  assert.match(verdict({ judges, expectations: [fails] }), /^It fails with `a`: .* 1 judgement objects\.$/);
  assert.match(verdict({ judges, expectations: [open] }), /^The judge .* 1 expectation is undecided\.$/);
});

test('a stopped and an imprecise run are not decided', () => {
  assert.equal(verdict({ verdict: 'undecided', partial: true, replications: 12 }), 'It is not decided: the run was stopped after 12 replications.');
  assert.equal(verdict({ verdict: 'undecided', imprecise: true, precision: 0.02 }),
    'It is not decided: “calls answered 429” is not known within 2 % in every row.');
});

test('bounds are in words', () => {
  const cases = [[{ least: 1 }, 'at least 1 s'], [{ most: 0 }, 'at most 0 s'], [{ least: 1, most: 2 }, '1 s to 2 s'],
    [{ equals: 60, within: 1 }, '1m within 1 s'], [{ equals: 2, within: 0 }, '2 s'], [{ least: 0.9, of: 'x' }, 'at least 0.9 times']];
  for (const [expectation, text] of cases) assert.equal(bounds(expectation, 's'), text);
});
