// Where swept values stand on their axis. Numbers with one unit, and durations, stand at their distances, on a
// logarithmic axis if they span more than a factor of 30; anything else stands in equal steps.

const durations = { us: 1, 'µs': 1, ms: 1e3, s: 1e6, min: 60e6, m: 60e6, h: 3600e6, d: 86400e6 };
const logarithmicFrom = 30;

function parse(value) {
  const match = /^\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(.*?)\s*$/.exec(String(value));
  return match ? { amount: Number(match[1]), unit: match[2] } : null;
}

function positions(values) {
  const parsed = values.map(parse);
  if (parsed.some((entry) => entry === null)) return null;
  if (parsed.every(({ unit }) => unit === parsed[0].unit)) return parsed.map(({ amount }) => amount);
  if (parsed.every(({ unit }) => unit in durations)) return parsed.map(({ amount, unit }) => amount * durations[unit]);
  return null;
}

export function sweepScale(values) {
  const xs = positions(values);
  const rising = xs !== null && xs.length > 1 && xs.every((x, index) => index === 0 || x > xs[index - 1]);
  if (!rising) return { kind: 'category', xs: values.map((_, index) => index), drawn: (x) => x };
  if (xs[0] > 0 && xs[xs.length - 1] / xs[0] >= logarithmicFrom) return { kind: 'log', xs, drawn: Math.log10 };
  return { kind: 'linear', xs, drawn: (x) => x };
}
