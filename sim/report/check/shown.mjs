// Reads numbers back from the text that the page shows, apart from the code that wrote them.

const spans = { µs: 1, ms: 1e3, s: 1e6, m: 60e6, h: 3600e6, d: 86400e6 };

// What a text shows, in the unit of the JSON, with half a unit of its last digit: {value, within}; twoParts for spans like "2m 7s".
export function read(text, unit) {
  const plain = text.replaceAll(',', '').replaceAll('−', '-').trim();
  if (['us', 'µs', 'ms', 's'].includes(unit)) return readSpan(plain, spans[unit] ?? 1);
  const match = /^(-?[\d.]+(?:e-?\d+)?)\s*(.*)$/.exec(plain);
  if (!match) throw new Error(`no number in '${text}'`);
  if (match[2] !== unit.trim()) throw new Error(`'${text}' should have the unit '${unit}'`);
  return { value: Number(match[1]), within: lastDigit(match[1]) };
}

function lastDigit(text) {
  const [digits, exponent = '0'] = text.split('e');
  const decimals = digits.includes('.') ? digits.split('.')[1].length : 0;
  return 0.5 * 10 ** (Number(exponent) - decimals);
}

function readSpan(text, size) {
  const parts = [...text.matchAll(/(-?[\d.]+(?:e-?\d+)?)\s*(µs|ms|[smhd])/g)];
  if (parts.length === 0) throw new Error(`no span of time in '${text}'`);
  const us = parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * spans[unit], 0);
  const [, amount, unit] = parts[parts.length - 1];
  // "2m" alone leaves out seconds, "3h" minutes: the unit below is what was rounded.
  const below = { m: spans.s, h: spans.m, d: spans.h }[unit];
  const within = parts.length === 1 && below ? below / 2 : lastDigit(amount) * spans[unit];
  return { value: us / size, within: within / size, twoParts: us >= spans.m };
}

// At least three digits are significant, but zeros at the end may be dropped ("1.5" of 1.502), so the third digit bounds
// the difference as well; only spans of a minute or more are rounded by their parts.
export function agrees(text, value, unit) {
  if (value === null || value === undefined) return text.trim() === '–';
  if (text.trim() === '–') return false;
  const shown = read(text, unit);
  if (value === 0) return shown.value === 0;
  const third = 0.5 * 10 ** (Math.floor(Math.log10(Math.abs(value))) - 2);
  const within = shown.twoParts ? shown.within : Math.min(shown.within, third);
  return Math.abs(shown.value - value) <= within * (1 + 1e-9) + Math.abs(value) * 1e-12;
}
