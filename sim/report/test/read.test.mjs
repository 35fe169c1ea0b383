import assert from 'node:assert/strict';
import { test } from 'node:test';
import { damaged, fill, fixtures } from '../check/fixtures.mjs';
import { readResult } from '../src/read.js';

test('every fixture is a result', () => {
  for (const make of Object.values(fixtures)) assert.equal(readResult(JSON.stringify(make())).format, 2);
});

test('damaged data is refused with words that name what is wrong', () => {
  for (const [name, [text, words]] of Object.entries(damaged)) {
    assert.throws(() => readResult(text), (error) => `${error.title} ${error.message}`.includes(words), name);
  }
});

test('data cannot end the element that holds it', () => {
  const filled = fill('<script>/*RESULT*/</script>', JSON.stringify({ text: "</script><b>$& $'" }));
  assert.equal(filled.split('</script>').length, 2);
  assert.deepEqual(JSON.parse(filled.slice(8, -9)), { text: "</script><b>$& $'" });
});
