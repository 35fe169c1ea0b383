import assert from 'node:assert/strict';
import { test } from 'node:test';
import { agrees } from '../check/shown.mjs';
import { compact, decade, duration, figure, interval, number, percent, quantile, spoken } from '../src/format.js';

test('durations stand in their natural unit', () => {
  const expected = [[0, '0 s'], [1, '1 µs'], [850, '850 µs'], [999.9, '1 ms'], [12_345, '12.3 ms'], [999_960, '1 s'],
    [1_250_000, '1.25 s'], [59_990_000, '1m'], [119_600_000, '2m'], [127_000_000, '2m 7s'], [3_599_900_000, '1h'],
    [3_780_000_000, '1h 3m'], [86_399_000_000, '1d'], [187_200_000_000, '2d 4h'], [-1_500, '−1.5 ms']];
  for (const [us, text] of expected) assert.equal(duration(us), text, String(us));
});

test('a percentage never rounds to the whole', () => {
  const expected = [[0, '0 %'], [100, '100 %'], [0.1, '0.1 %'], [4.74, '4.74 %'], [99.99, '99.99 %'],
    [99.9987, '99.999 %'], [99.99999, '99.99999 %'], [0.001_234, '0.00123 %'], [350, '350 %']];
  for (const [value, text] of expected) assert.equal(percent(value), text, String(value));
});

test('numbers have thousands and three digits', () => {
  const expected = [[0, '0'], [104, '104'], [9481.2, '9,481'], [3_075_237, '3,075,237'], [1 / 3, '0.333'], [-1234.5, '−1,235'],
    [0.00001234, '1.23e−5']];
  for (const [value, text] of expected) assert.equal(number(value), text, String(value));
});

test('figures take the unit of the data', () => {
  assert.equal(figure(2000, 'us'), '2 ms');
  assert.equal(figure(2, 'ms'), '2 ms');
  assert.equal(figure(2, 's'), '2 s');
  assert.equal(figure(9481.2, '/s'), '9,481/s');
  assert.equal(figure(1.6, ''), '1.6');
  assert.equal(figure(12, 'calls'), '12 calls');
  for (const value of [null, undefined, NaN, Infinity]) assert.equal(figure(value, '%'), '–');
  assert.equal(interval(0.1, 0.2, '%'), '0.1 % to 0.2 %');
  assert.equal(interval(null, 0.2, '%'), '');
  assert.equal(spoken(99.13, '/s'), '99.1');
  assert.equal(spoken(2.5, '%'), '2.5 %');
});

test('axes have short labels', () => {
  assert.deepEqual([950, 1200, 35e6, 2e9, 0.1 + 0.2].map(compact), ['950', '1.2 k', '35 M', '2 G', '0.3']);
  assert.deepEqual([10, 1000, 1e8].map(decade), ['10 µs', '1 ms', '100 s']);
  assert.deepEqual([0, 0.5, 0.999, 1].map(quantile), ['shortest', 'p50', 'p99.9', 'longest']);
});

// The checks of pages rest on reading numbers back; a wrong number must not pass there.
test('a shown number agrees with its value alone', () => {
  const values = [0, 1, 850, 12_345, 999_960, 1_250_000, 127_000_000, 3_780_000_000, 0.04, 0.333333, 99.87, 123_456.7];
  for (const unit of ['us', 's', '%', '/s', '', 'calls']) {
    for (const value of values) {
      const text = figure(value, unit);
      assert.ok(agrees(text, value, unit), `${text} of ${value} ${unit}`);
      assert.ok(!agrees(text, value * 1.03 + 0.003, unit), `${text} of another value than ${value} ${unit}`);
    }
  }
  assert.ok(agrees('–', null, '%'));
  assert.ok(!agrees('–', 0, '%') && !agrees('0 %', null, '%'));
});
