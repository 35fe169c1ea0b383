// The result of a run with what the sections ask of it: variants, sweep points, rows and names.

export class Model {
  constructor(result) {
    this.result = result;
    this.variants = [...new Set(result.rows.map((row) => row.variant))];
    this.points = result.sweep ? result.sweep.values.map((_, index) => index) : [0];
    this.faults = result.faults ?? [];
    this.expectations = result.expectations ?? [];
    this.judges = result.judges ?? [];
    this.rows = new Map(result.rows.map((row) => [`${row.point}/${row.variant}`, row]));
  }

  row(variant, point) {
    return this.rows.get(`${point}/${variant}`);
  }

  rowsAt(point) {
    return this.variants.map((variant) => this.row(variant, point)).filter(Boolean);
  }

  // What no figure of a row counts, in microseconds.
  warmup(row) {
    return row?.warmup_us ?? this.result.warmup_us ?? 0;
  }

  // The shortest and the longest of all rows.
  warmups() {
    const each = this.result.rows.map((row) => this.warmup(row));
    return [Math.min(...each), Math.max(...each)];
  }

  // Without variants the one row has the name of the scenario.
  name(variant) {
    return variant || this.result.scenario;
  }

  // With several axes, the text of a point has their names.
  point(point) {
    const { sweep } = this.result;
    if (!sweep) return '';
    return this.isGrid() ? String(sweep.values[point]) : `${sweep.parameter} = ${sweep.values[point]}`;
  }

  // Whether several parameters are swept.
  isGrid() {
    return (this.result.sweep?.axes ?? []).length > 1;
  }

  // What the curves are drawn over: the first swept parameter.
  axis() {
    const { parameter, values, axes } = this.result.sweep;
    return this.isGrid() ? axes[0] : { parameter, values };
  }

  // One curve for each variant and each value of the other parameters, with its points in the order of the axis.
  curves() {
    const steps = this.axis().values.length;
    const others = this.points.length / steps;
    return this.variants.flatMap((variant) => Array.from({ length: others }, (_, other) => ({
      variant,
      name: [this.isGrid() ? variant : this.name(variant), this.others(other)].filter(Boolean).join(', '),
      points: Array.from({ length: steps }, (__, step) => step * others + other),
    })));
  }

  // The values of all axes but the first: "jobs.keys = 5". The last one changes first.
  others(index) {
    if (!this.isGrid()) return '';
    let rest = index;
    return this.result.sweep.axes.slice(1).reverse().map(({ parameter, values }) => {
      const value = values[rest % values.length];
      rest = Math.floor(rest / values.length);
      return `${parameter} = ${value}`;
    }).reverse().join(', ');
  }

  // A place in the results in words: "local, arrivals.load = 0.9".
  place(variant, point) {
    const parts = [variant];
    if (this.result.sweep && Number.isInteger(point)) parts.push(this.point(point));
    return parts.filter(Boolean).join(', ');
  }

  metric(name) {
    const metric = this.result.metrics[name] ?? {};
    return { title: metric.title ?? name, unit: metric.unit ?? '' };
  }
}
