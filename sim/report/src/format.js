// Numbers as people read them. Three significant digits, thousands in commas, durations in their natural unit.

export const undefinedFigure = '–';

const minus = (text) => text.replace('-', '−');

// Thousands are grouped by hand, so that the text does not depend on the reader's language.
function grouped(text) {
  const [whole, fraction] = text.split('.');
  const commas = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return fraction === undefined ? commas : `${commas}.${fraction}`;
}

function significant(value, digits = 3) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 10 ** (digits - 1)) return grouped(value.toFixed(0));
  if (size < 1e-4) return value.toExponential(digits - 1);
  return String(Number(value.toPrecision(digits)));
}

export function number(value) {
  return minus(Number.isInteger(value) ? grouped(String(value)) : significant(value));
}

// A percentage, of which one that is not quite 100 % never reads "100 %".
export function percent(value, leastDecimals = 2) {
  if (Math.abs(value) < 1 || Number.isInteger(value)) return `${minus(significant(value))} %`;
  let decimals = leastDecimals;
  while (Math.abs(value) < 100 && Number(Math.abs(value).toFixed(decimals)) >= 100 && decimals < 10) ++decimals;
  return `${minus(grouped(String(Number(value.toFixed(decimals)))))} %`;
}

const second = 1e6;
const calendar = [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]];

// A minute or more, in two parts. The smaller part is rounded first: 119.6 s are 2m, not 1m 60s.
function longDuration(seconds) {
  let part = seconds >= 86400 ? 0 : seconds >= 3600 ? 1 : 2;
  const smallest = calendar[part + 1][1];
  const rounded = Math.round(seconds / smallest) * smallest;
  if (part > 0 && rounded >= calendar[part - 1][1]) part -= 1;
  const [unit, size] = calendar[part];
  const [restUnit, restSize] = calendar[part + 1];
  const rest = Math.round((rounded % size) / restSize);
  return `${Math.floor(rounded / size)}${unit}${rest > 0 ? ` ${rest}${restUnit}` : ''}`;
}

// A span of microseconds: 850 µs, 12.3 ms, 1.25 s, 2m 7s, 1h 3m, 2d 4h.
export function duration(us) {
  if (us === 0) return '0 s';
  if (us < 0) return `−${duration(-us)}`;
  for (const [unit, size, limit] of [['µs', 1, 1000], ['ms', 1000, 1000], ['s', second, 60]]) {
    if (Number((us / size).toPrecision(3)) < limit) return `${significant(us / size)} ${unit}`;
  }
  return longDuration(us / second);
}

// How a unit of the data is shown, by its name there.
const units = {
  '%': percent,
  us: duration,
  'µs': duration,
  ms: (value) => duration(value * 1000),
  s: (value) => duration(value * second),
  '': number,
};

export function figure(value, unit = '') {
  if (value === null || value === undefined || !Number.isFinite(value)) return undefinedFigure;
  const known = units[unit];
  if (known) return known(value);
  return unit.startsWith('/') ? `${number(value)}${unit}` : `${number(value)} ${unit}`;
}

// In a sentence, which says "a second" itself: a rate is a plain number there, and a percentage has three digits.
export function spoken(value, unit = '') {
  if (unit === '%') return percent(value, Math.abs(value) >= 10 ? 1 : 2);
  return figure(value, unit.startsWith('/') ? '' : unit);
}

export function interval(low, high, unit) {
  if (!Number.isFinite(low) || !Number.isFinite(high)) return '';
  return `${figure(low, unit)} to ${figure(high, unit)}`;
}

// Short numbers for axes: 950, 1.2 k, 35 M.
export function compact(value) {
  for (const [size, suffix] of [[1e9, ' G'], [1e6, ' M'], [1e3, ' k']]) {
    if (Math.abs(value) >= size) return minus(`${Number((value / size).toPrecision(3))}${suffix}`);
  }
  return minus(String(Number(value.toPrecision(3))));
}

// Axis labels for a unit, where every label of an axis shall have the same shape.
export function axisLabel(unit) {
  if (units[unit] === number) return compact;
  if (units[unit]) return units[unit];
  return compact;
}

// A decade of waits on a logarithmic axis: 10 µs, 1 ms, 100 s.
export function decade(us) {
  if (us < 1000) return `${number(us)} µs`;
  if (us < second) return `${number(us / 1000)} ms`;
  return `${number(Math.round(us / second))} s`;
}

export function quantile(q) {
  if (q >= 1) return 'longest';
  if (q <= 0) return 'shortest';
  return `p${Number((q * 100).toPrecision(8))}`;
}

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}
