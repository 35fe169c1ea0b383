// Axes of virtual time, in the unit that gives round ticks.
import { number } from '../format.js';
import { axis } from './look.js';

const units = [['s', 1e6, 300e6], ['min', 60e6, 3 * 3600e6], ['h', 3600e6, 4 * 86400e6], ['days', 86400e6, Infinity]];

export function timeScale(durationUs) {
  const [unit, size] = units.find(([, , limit]) => durationUs <= limit);
  return { unit, of: (us) => us / size, us: (value) => value * size };
}

export function timeAxis(look, scale, durationUs, rest = {}) {
  return axis(look, {
    type: 'value', min: 0, max: scale.of(durationUs), interval: niceStep(scale.of(durationUs), look.narrow ? 4 : 8),
    axisLabel: { formatter: (value) => number(Number(value.toPrecision(6))), showMaxLabel: true },
    ...rest,
  });
}

// The smallest round step of which `most` reach over the extent.
export function niceStep(extent, most, factors = [1, 2, 5, 10]) {
  const power = 10 ** Math.floor(Math.log10(extent / most));
  return factors.map((factor) => factor * power).find((step) => Math.ceil(extent / step) <= most) ?? 10 * power;
}
