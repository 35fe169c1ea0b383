// Results of made-up runs that stretch the page: a sweep, 2,000 workers, a stopped run without data, undefined figures.

// A small generator with a fixed seed, so that every check draws the same pages.
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const metrics = {
  share_429: { title: 'calls answered 429', unit: '%', better: 'less', phrase: '{} of the calls are answered 429', help: 'Calls that the API refused with 429, of all calls.' },
  wait_p99: { title: 'p99 wait', unit: 'us', better: 'less', phrase: '99 % of the jobs wait at most {}', help: '99 % of the jobs wait at most so long.' },
  goodput: { title: 'goodput', unit: '/s', better: 'more', phrase: '{} calls a second succeed', help: 'Calls that succeeded, in a second.' },
  recovery: { title: 'recovery time', unit: 's', better: 'less', phrase: 'the goodput is back {} after the last fault', help: 'From the end of the last fault until the goodput is back.' },
  ops_per_call: { title: 'store operations per admitted call', unit: '', better: 'less', phrase: 'each call costs {} store operations', help: 'Operations of the store, divided by the calls.' },
  jain: { title: 'Jain’s index of workers', unit: '', better: 'more', phrase: 'Jain’s index is {}', help: 'How evenly the workers share the goodput.' },
};
const parameterHelp = { 'fleet.workers': 'how many workers there are', 'arrivals.rate': 'jobs of the whole fleet', 'store.latency': 'of an operation, to and fro',
  'arrivals.load': 'the rate as a multiple', 'limiter.hold': 'how long units are held', 'limiter.policy': 'what the limiter does without a store' };
const headline = ['share_429', 'wait_p99', 'goodput', 'recovery', 'ops_per_call'];

const figure = (value, spread) => ({ value, low: Math.max(0, value * (1 - spread)), high: value * (1 + spread) });

function base(scenario, rest) {
  return {
    format: 2, scenario, question: 'What happens to callers while Redis is away for 30 seconds?',
    description: 'A fleet of 20 workers calls an API with a limit of 100 calls a second. The store of the limiter goes ' +
      'away for 30 seconds.\n\nEach variant is a policy for the time without a store.',
    revision: 'abc1234', seed: 1, replications: 30, confidence: 0.99, partial: false, duration_us: 600_000_000, warmup_us: 0,
    verdict: 'holds', metrics, headline,
    parameters: { 'fleet.workers': '20', 'arrivals.rate': '100/s', 'store.latency': 'log-normal p50 250us, p99 800us' },
    parameter_help: parameterHelp, judge_help: {},
    faults: [], expectations: [], judges: [], sweep: null, rows: [],
    notes: ['The processor time of a worker is not modelled.', 'The network between worker and API loses nothing.'],
    ...rest,
  };
}

function series({ steps, step, rate, outage, factor, store, next }) {
  const columns = { offered: [], admitted: [], ok: [], refused: [], waiting: [], unfinished: [], store_operations: [] };
  let waiting = 0;
  for (let index = 0; index < steps; ++index) {
    const out = outage && index * step >= outage[0] && index * step < outage[1];
    const offered = Math.round((rate * step * (0.9 + 0.2 * next())) / 1e6);
    const capacity = (100 * step) / 1e6;
    const admitted = out ? Math.round(offered * factor) : Math.min(offered + waiting, Math.round(capacity));
    const refused = Math.max(0, Math.round(admitted - capacity));
    waiting = Math.max(0, waiting + offered - admitted);
    columns.offered.push(offered);
    columns.admitted.push(admitted);
    columns.ok.push(admitted - refused);
    columns.refused.push(refused);
    columns.waiting.push(waiting);
    columns.unfinished.push(waiting + 3);
    columns.store_operations.push(out ? 0 : Math.round(admitted * store));
  }
  return { step_us: step, columns };
}

function shares(count, spread, next) {
  const raw = Array.from({ length: count }, () => 1 + spread * (next() - 0.5) * 2);
  const total = raw.reduce((sum, value) => sum + value, 0);
  return raw.map((value) => value / total);
}

const hash = (next) => Array.from({ length: 16 }, () => Math.floor(next() * 16).toString(16)).join('');

function sweepFixture() {
  const next = random(7);
  const loads = ['0.8', '0.9', '1.0', '1.1', '1.2', '1.3'];
  const variants = ['admit', 'local', 'refuse', 'wait for the store, with jitter'];
  const outage = [300e6, 330e6];
  const rows = variants.flatMap((variant, v) => loads.map((load, point) => {
    const over = Math.max(0, Number(load) - 0.95);
    return {
      variant, point, trace: hash(next), parameters: { 'store.on_failure': variant },
      figures: {
        share_429: figure([6, 0.04, 0, 0.2][v] * (1 + 8 * over), 0.15),
        wait_p99: figure(20e3 + 60e6 * over ** 2 * (1 + v), 0.2),
        goodput: figure(Math.min(100, 100 * Number(load)) * (1 - 0.01 * v), 0.004),
        recovery: variant === 'refuse' && point === 5 ? { value: null, low: null, high: null, never: 12, after_s: 270 } : figure(1 + v + 40 * over, 0.1),
        ops_per_call: figure(1.1 + (v === 3 ? 0.9 * over : 0.05), 0.02),
        jain: { ...figure(0.99 - 0.01 * v, 0.001), replications: 30 - v },
      },
      series: series({ steps: 120, step: 5e6, rate: 100 * Number(load), outage, factor: [1.3, 0.95, 0, 0.5][v], store: 1.1 + 0.2 * v, next }),
      wait_quantiles: [[0.5, v === 0 ? 0 : 300 * (1 + v)], [0.9, 4e3 * (1 + v)], [0.99, 20e3 + 60e6 * over ** 2 * (1 + v)], [0.999, 31e6 + 20e6 * over], [1, 64e6 + 90e6 * over]],
      windows: [{ limit: 100, window_us: 1e6, worst: [131, 104, 100, 100][v] }, { limit: 5000, window_us: 60e6, worst: [5210, 4990, 4871, 5000][v] }],
      workers: shares(20, 0.1 + 0.15 * v, next),
    };
  }));
  return base('redis-outage', {
    rows, sweep: { parameter: 'arrivals.load', values: loads }, verdict: 'fails',
    faults: [
      { kind: 'store_outage', from_us: 300e6, to_us: 330e6, text: 'store unreachable for 30 s', help: 'connections are refused' },
      { kind: 'store_slow', from_us: 420e6, to_us: 450e6, text: 'store ten times slower', help: 'the store works factor times as long' },
      { kind: 'worker_crash', from_us: 500e6, to_us: 500e6, text: 'worker 3 crashes', help: 'a worker dies' },
    ],
    expectations: [
      { text: "calls answered 429 of 'local': at most 0.1 %", status: 'holds', metric: 'share_429', variant: 'local', point: 0, value: 0.04, low: 0.034, high: 0.046, least: null, most: 0.1 },
      { text: "calls answered 429 of 'admit': at most 5 %", status: 'fails', metric: 'share_429', variant: 'admit', point: 5, value: 22.8, low: 19.38, high: 26.22, least: null, most: 5 },
      { text: "goodput of 'refuse': at least 97/s", status: 'undecided', metric: 'goodput', variant: 'refuse', point: 3, value: 98, low: 97.608, high: 98.392, least: 98, most: null },
      { text: "recovery time of 'refuse': at most 30 s", status: 'fails', metric: 'recovery', variant: 'refuse', point: 5, value: null, low: null, high: null, least: null, most: 30 },
      { text: "store operations of 'admit': at least 0.9 times that of 'local'", status: 'holds', metric: 'ops_per_call', variant: 'admit', of: 'local', point: 3, value: 1, low: 0.97, high: 1.03, least: 0.9, most: null },
    ],
    judge_help: { 'rate bound': 'No interval admits more than the bound.', liveness: 'The goodput comes back.', 'lease returned': 'Every lease ends.' },
    judges: [
      { name: 'rate bound', variant: 'local', point: 0, status: 'holds', text: 'no interval admits more than the bucket allows' },
      { name: 'liveness', variant: 'admit', point: 5, status: 'objects', text: '60 s after the last fault the goodput is 91 % of that before it' },
      { name: 'lease returned', variant: 'refuse', point: 2, status: 'not met', text: 'no lease was ever taken' },
    ],
  });
}

function workersFixture() {
  const next = random(11);
  const variants = ['none', 'per process', 'shared', 'ideal'];
  return base('fleet', {
    question: 'What does a limiter change for a fleet of 2,000 workers?', duration_us: 3600e6, warmup_us: 120e6,
    parameters: Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`group${index % 7}.parameter_${index}`, `${index * 37}ms`])),
    parameter_help: Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`group${index % 7}.parameter_${index}`, `what number ${index} means`])),
    rows: variants.map((variant, v) => ({
      variant, point: 0, trace: hash(next),
      figures: {
        share_429: figure([81.5, 0, 0, 0][v], 0.01), wait_p99: figure([220e6, 2785e6, 127e6, 81e6][v], 0.05),
        goodput: figure([9480, 6298.4, 9481.2, 9481.9][v], 0.001), recovery: figure(0, 0), ops_per_call: figure([0, 1.83, 1.6, 0][v], 0.01),
      },
      series: series({ steps: 720, step: 5e6, rate: 95 * (1 + 3 * (v === 0)), factor: 1, store: [0, 1.8, 1.6, 0][v], next }),
      wait_quantiles: [[0.5, [3.28e6, 273e6, 129e3, 39.3e6][v]], [0.9, [60e6, 900e6, 9e6, 60e6][v]], [0.99, [220e6, 2785e6, 127e6, 81e6][v]], [1, [900e6, 3500e6, 300e6, 90e6][v]]],
      windows: [{ limit: 10000, window_us: 60e6, worst: [104_233, 9_871, 10_000, 10_000][v] }],
      workers: shares(2000, [0.95, 0.2, 0.05, 0.01][v], next),
    })),
  });
}

function stoppedFixture() {
  return base('backlog', {
    partial: true, replications: 12, planned_replications: 30, verdict: 'undecided', notes: undefined, parameters: {},
    rows: [{ variant: '', point: 0, trace: '0123456789abcdef', figures: {} }],
  });
}

function undefinedFixture() {
  const none = { value: null, low: null, high: null };
  const next = random(3);
  return base('wrong-retry-after <b>&amp;</b>', {
    verdict: 'undecided',
    rows: ['missing', 'too short'].map((variant, v) => ({
      variant, point: 0, trace: hash(next),
      figures: { share_429: v === 0 ? none : { value: 99.99871, low: null, high: null }, wait_p99: figure(0, 0), goodput: none, recovery: none, ops_per_call: figure(1 / 3, 0.1) },
      series: { step_us: 1e6, columns: { offered: Array(30).fill(0), ok: Array(30).fill(null), refused: Array(30).fill(0) } },
      wait_quantiles: [[0.5, 0], [0.9, 0], [0.99, v === 0 ? 0 : null], [1, v === 0 ? 0 : 1]],
      windows: [{ limit: 10, window_us: 1e6, worst: v === 0 ? 0 : null }],
      workers: v === 0 ? [0.2, null, 0.8] : [0, 0, 0],
    })),
    duration_us: 30e6, sweep: null,
    replications: 1,
    expectations: [{ text: 'recovery: at most 5 s', status: 'undecided', metric: 'recovery', variant: 'missing', point: 0, value: null, low: null, high: null, least: null, most: 5 }],
  });
}

// Twelve variants with long names, sixty faults, seven days, and a sweep over words.
function crowdFixture() {
  const next = random(5);
  const day = 86_400e6;
  const policies = ['none', 'one limiter per process', 'fail_open_but_never_for_longer_than_the_lease_of_the_slot'];
  return base('rolling-deploy-with-a-name-longer-than-the-width-of-any-phone', {
    duration_us: 7 * day, sweep: { parameter: 'limiter.policy', values: policies }, verdict: 'holds',
    faults: Array.from({ length: 60 }, (_, index) => ({ kind: 'worker_crash', from_us: index * 0.1 * day, to_us: (index + (index % 2) * 0.05) * 0.1 * day, text: `worker ${index} restarts`, help: 'a worker starts anew' })),
    rows: Array.from({ length: 12 }, (_, v) => policies.map((policy, point) => ({
      variant: `variant ${v}${v % 3 === 0 ? ' with a rather long description of what it does' : ''}`, point, trace: hash(next),
      figures: Object.fromEntries(headline.map((metric, index) => [metric, figure((index + 1) * (v + 1) * (point + 1) * 1e-3, 0.2)])),
      series: series({ steps: 168, step: day / 24, rate: 50 + 10 * v, factor: 1, store: 2, next }),
      wait_quantiles: [[0.01, 1], [0.1, 10], [0.25, 50], [0.5, 300 + v], [0.75, 1e4], [0.9, 1e5], [0.95, 2e5], [0.99, 1e6 * (v + 1)], [0.999, 1e8], [0.9999, 1e9], [1, 5e10]],
      windows: [1, 60, 3600, 86400].map((seconds) => ({ limit: 100 * seconds, window_us: seconds * 1e6, worst: 100 * seconds + v * point })),
      workers: shares(3 + v, 0.5, next),
    }))).flat(),
  });
}

// Two swept parameters: three curves for each of two variants.
function gridFixture() {
  const next = random(11);
  const loads = ['0.8', '1', '1.2', '1.4'];
  const holds = ['100ms', '500ms', '2s'];
  const texts = loads.flatMap((load) => holds.map((hold) => `arrivals.load = ${load}, limiter.hold = ${hold}`));
  const rows = ['shared', 'prefetch'].flatMap((variant, v) => texts.map((_, point) => {
    const [load, hold] = [Number(loads[Math.floor(point / 3)]), point % 3];
    return {
      variant, point, trace: hash(next),
      figures: {
        share_429: figure(Math.max(0, load - 1) * (hold + 1) * (v + 1), 0.1),
        goodput: figure(100 * Math.min(load, 1) - hold - 3 * v, 0.01),
      },
    };
  }));
  return base('prefetch-grid', {
    rows, verdict: 'holds', headline: ['share_429', 'goodput'],
    sweep: {
      parameter: 'arrivals.load, limiter.hold', values: texts,
      axes: [{ parameter: 'arrivals.load', values: loads }, { parameter: 'limiter.hold', values: holds }],
    },
  });
}

export const fixtures = {
  sweep: sweepFixture, grid: gridFixture, crowd: crowdFixture, workers: workersFixture, stopped: stoppedFixture, undefined: undefinedFixture,
};

// What the page must say of data that it cannot show: [text of the data, words of the message].
export const damaged = {
  empty: ['/*RESULT*/', 'empty template'],
  'cut off': ['{"format":1,"scenario":"fle', 'not valid JSON'],
  newer: ['{"format":3,"scenario":"fleet"}', 'newer than its page'],
  older: ['{"format":1,"scenario":"fleet"}', 'older than its page'],
  'without rows': ['{"format":2,"scenario":"fleet","duration_us":1,"metrics":{},"headline":[]}', 'rows must be a list; it is missing'],
  'a grid of too few points': [JSON.stringify(base('fleet', { sweep: { parameter: 'a, b', values: ['a = 1, b = 2'],
    axes: [{ parameter: 'a', values: ['1', '2'] }, { parameter: 'b', values: ['2'] }] } })), 'sweep.axes have 2 points, sweep.values 1'],
  'wrong point': [JSON.stringify(base('fleet', { rows: [{ variant: '', point: 3, figures: {} }] })), 'rows[0].point'],
};

export const fill = (template, text) => template.replace('/*RESULT*/', () => text.replaceAll('<', '\\u003c'));
