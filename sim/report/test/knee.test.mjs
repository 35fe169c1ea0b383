import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sweepScale } from '../src/charts/sweep_scale.js';
import { kneeOf } from '../src/knee.js';

const curve = (...ys) => ys.map((y, x) => [x, y]);

test('the knee is the point farthest from the chord', () => {
  assert.equal(kneeOf(curve(0, 0, 0, 10, 20)), 2);
  assert.equal(kneeOf(curve(0, 10, 11, 12, 13)), 1);
  assert.equal(kneeOf(curve(20, 10, 0, 0, 0)), 2);
  // y = x / (x + 1) on 0..8, by hand: the distance from the chord y = x / 9 is largest where (x + 1)^2 = 9.
  assert.equal(kneeOf(Array.from({ length: 9 }, (_, x) => [x, x / (x + 1)])), 2);
});

test('a line, a flat curve, a peak and fewer than five points have no knee', () => {
  assert.equal(kneeOf(curve(0, 1, 2, 3, 4)), -1);
  assert.equal(kneeOf(curve(5, 5, 5, 5, 5)), -1);
  assert.equal(kneeOf(curve(0, 10, 10, 10, 0)), -1);
  assert.equal(kneeOf(curve(0, 0, 0, 0, 10)), 3);
  assert.equal(kneeOf(curve(0, 0, 0, 10)), -1);
  assert.equal(kneeOf(curve(0, 0, 10)), -1);
  assert.equal(kneeOf(curve(0, 10)), -1);
  assert.equal(kneeOf([]), -1);
});

test('a curve may waver by a tenth of its range', () => {
  assert.equal(kneeOf(curve(1, 0.5, 0, 10, 20)), 2);
  assert.equal(kneeOf(curve(5, 0, 0, 10, 20)), -1);
});

test('swept values stand at their distances if they have one unit', () => {
  assert.deepEqual([sweepScale(['0.8', '1', '1.3']).kind, sweepScale(['0.8', '1', '1.3']).xs], ['linear', [0.8, 1, 1.3]]);
  assert.equal(sweepScale(['1', '10', '50', '200']).kind, 'log');
  assert.deepEqual(sweepScale(['50ms', '1s', '1.2s']).xs, [50e3, 1e6, 1.2e6]);
  assert.deepEqual(sweepScale(['100/s', '150/s']).xs, [100, 150]);
  for (const values of [['none', 'full'], ['2', '1'], ['1', '1'], ['1', '2 calls'], ['7']]) {
    assert.equal(sweepScale(values).kind, 'category', values.join());
  }
});
