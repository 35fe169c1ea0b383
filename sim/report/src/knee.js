// The knee of a curve by the rule of Kneedle: both axes scaled to 0..1, the point with the largest distance from the
// chord between the first point and the last. A curve has none if it has fewer than five points, for a bend between two
// swept values is no knee; if it both rises and falls by more than a tenth of its range; or if no point is farther from
// the chord than a tenth.

export const kneeRule = 'A knee is the point farthest from the straight line between the curve’s first and last ' +
  'points, with both axes scaled to 0–1 as drawn (Kneedle’s rule). A curve has none if it both rises and falls ' +
  'by more than a tenth of its range, or if no point is farther from that line than a tenth.';

// A curve of fewer points is not asked for its knee.
export const fewestPoints = 5;

const least = 0.1;

// `points` are [x, y] in the order of x, without undefined ones. The result is an index, or -1 for none.
export function kneeOf(points) {
  if (points.length < fewestPoints) return -1;
  const ys = points.map(([, y]) => y);
  const [low, high] = [Math.min(...ys), Math.max(...ys)];
  const [first, last] = [points[0], points[points.length - 1]];
  if (high === low || last[0] === first[0] || movesBothWays(ys, (high - low) * least)) return -1;

  const scaled = points.map(([x, y]) => [(x - first[0]) / (last[0] - first[0]), (y - low) / (high - low)]);
  const [start, end] = [scaled[0][1], scaled[scaled.length - 1][1]];
  const length = Math.hypot(1, end - start);
  const distances = scaled.map(([x, y]) => Math.abs(y - start - (end - start) * x) / length);
  const largest = Math.max(...distances);
  return largest > least ? distances.indexOf(largest) : -1;
}

function movesBothWays(ys, tolerance) {
  let [lowest, highest, rise, fall] = [ys[0], ys[0], 0, 0];
  for (const y of ys) {
    lowest = Math.min(lowest, y);
    highest = Math.max(highest, y);
    rise = Math.max(rise, y - lowest);
    fall = Math.max(fall, highest - y);
  }
  return rise > tolerance && fall > tolerance;
}
