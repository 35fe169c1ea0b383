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

  // Without variants the one row has the name of the scenario.
  name(variant) {
    return variant || this.result.scenario;
  }

  point(point) {
    return this.result.sweep ? `${this.result.sweep.parameter} = ${this.result.sweep.values[point]}` : '';
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
