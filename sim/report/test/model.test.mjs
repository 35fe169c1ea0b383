import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fixtures } from '../check/fixtures.mjs';
import { Model } from '../src/model.js';

test('with one swept parameter, each variant is a curve over all points', () => {
  const model = new Model(fixtures.sweep());
  assert.equal(model.axis().parameter, 'arrivals.load');
  assert.deepEqual(model.curves().map(({ name }) => name), model.variants);
  assert.deepEqual(model.curves()[1].points, [0, 1, 2, 3, 4, 5]);
  assert.equal(model.place('local', 1), 'local, arrivals.load = 0.9');
});

test('with two, each value of the second is a curve over the first', () => {
  const model = new Model(fixtures.grid());
  assert.equal(model.axis().parameter, 'arrivals.load');
  assert.deepEqual(model.curves().map(({ name }) => name), ['shared', 'prefetch'].flatMap((variant) =>
    ['100ms', '500ms', '2s'].map((hold) => `${variant}, limiter.hold = ${hold}`)));
  assert.deepEqual(model.curves()[2].points, [2, 5, 8, 11]);
  assert.equal(model.place('prefetch', 5), 'prefetch, arrivals.load = 1, limiter.hold = 2s');
});

test('the last of three parameters changes first', () => {
  const axes = [['a', ['1', '2']], ['b', ['3', '4']], ['c', ['5', '6', '7']]].map(([parameter, values]) => ({ parameter, values }));
  const result = { ...fixtures.grid(), sweep: { parameter: 'a, b, c', values: Array.from({ length: 12 }, (_, i) => `${i}`), axes } };
  const curves = new Model(result).curves();
  assert.equal(curves[4].name, 'shared, b = 4, c = 6');
  assert.deepEqual(curves[4].points, [4, 10]);
});

test('the warm-up of a row is its own, or that of the result', () => {
  const result = fixtures.grid();
  result.warmup_us = 3e6;
  result.rows[0].warmup_us = 1e6;
  result.rows[1].warmup_us = 0;
  const model = new Model(result);
  assert.equal(model.warmup(result.rows[0]), 1e6);
  assert.equal(model.warmup(result.rows[1]), 0);
  assert.equal(model.warmup(result.rows[2]), 3e6);
  assert.deepEqual(model.warmups(), [0, 3e6]);
});

test('rows that fail come first, at their point alone', () => {
  const model = new Model(fixtures.sweep());
  const order = (point) => model.rowsBySeverity(point).map(({ variant }) => variant);
  assert.deepEqual(order(5), ['admit', 'refuse', 'local', 'wait for the store, with jitter']);
  assert.deepEqual(order(3), ['refuse', 'admit', 'local', 'wait for the store, with jitter']);
  assert.deepEqual(order(0), model.variants);
});

test('expectations and judges stand with the worst first, in their order otherwise', () => {
  const model = new Model(fixtures.sweep());
  assert.deepEqual(model.expectations.map(({ status }) => status), ['fails', 'fails', 'undecided', 'holds', 'holds']);
  assert.deepEqual(model.expectations.filter(({ status }) => status === 'fails').map(({ metric }) => metric), ['share_429', 'recovery']);
  assert.deepEqual(model.judges.map(({ status }) => status), ['objects', 'not met', 'holds']);
});

test('the page opens at what fails, then at what is undecided, then at the last point', () => {
  const at = (...entries) => new Model({ ...fixtures.sweep(), judges: [],
    expectations: entries.map(([status, point]) => ({ status, point, metric: 'goodput', variant: 'local' })) }).firstPoint();
  assert.equal(at(['holds', 1], ['undecided', 2], ['fails', 3]), 3);
  assert.equal(at(['holds', 1], ['undecided', 2]), 2);
  assert.equal(at(['holds', 1]), 5);
  assert.equal(new Model(fixtures.workers()).firstPoint(), 0);
});

test('a variant shows what it and others set', () => {
  const result = fixtures.workers();
  result.parameters = { 'limiter.kind': 'token_bucket', 'fleet.workers': '20' };
  result.rows[0].parameters = { 'limiter.kind': 'none' };
  const model = new Model(result);
  assert.equal(model.settings(result.rows[0]), 'limiter.kind = none');
  assert.equal(model.settings(result.rows[1]), 'limiter.kind = token_bucket');
});
