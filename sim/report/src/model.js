// The result of a run with what the sections ask of it: variants, sweep points, rows and names.

// The worst of statuses comes first. "not met" is a judge that had nothing to judge.
const severity = ['fails', 'objects', 'undecided', 'not met', 'holds'];

export const bySeverity = (a, b) => severity.indexOf(a.status) - severity.indexOf(b.status);

export class Model {
  constructor(result) {
    this.result = result;
    this.variants = [...new Set(result.rows.map((row) => row.variant))];
    this.points = result.sweep ? result.sweep.values.map((_, index) => index) : [0];
    this.faults = result.faults ?? [];
    this.expectations = [...(result.expectations ?? [])].sort(bySeverity);
    this.judges = [...(result.judges ?? [])].sort(bySeverity);
    this.rows = new Map(result.rows.map((row) => [`${row.point}/${row.variant}`, row]));
  }

  row(variant, point) {
    return this.rows.get(`${point}/${variant}`);
  }

  // In the order of the data, in which they have their colours.
  rowsAt(point) {
    return this.variants.map((variant) => this.row(variant, point)).filter(Boolean);
  }

  // The worst that expectations and judges say of a row.
  status(row) {
    return [...this.expectations, ...this.judges]
      .filter(({ variant, point }) => (variant ?? '') === row.variant && (point ?? 0) === row.point)
      .sort(bySeverity)[0]?.status;
  }

  // Rows that fail first.
  rowsBySeverity(point) {
    return this.rowsAt(point).map((row) => ({ row, status: this.status(row) ?? 'holds' })).sort(bySeverity).map(({ row }) => row);
  }

  // Where the page opens: at what fails, else at what is undecided, else at the last of the swept values, which is as a
  // rule the hardest.
  firstPoint() {
    const worst = [...this.expectations, ...this.judges].sort(bySeverity)
      .find(({ status, point }) => ['fails', 'objects', 'undecided'].includes(status) && this.points.includes(point));
    return worst?.point ?? this.points.length - 1;
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

  // By what a variant differs: "store.on_failure = local". What only others set has the value of the run.
  settings(row) {
    const names = new Set(this.result.rows.flatMap(({ parameters }) => Object.keys(parameters ?? {})));
    const common = this.result.parameters ?? {};
    return [...names].map((name) => [name, row.parameters?.[name] ?? common[name]]).filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name} = ${value}`).join(', ');
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
    const { title = name, unit = '', better = '', phrase = '', help = '' } = this.result.metrics[name] ?? {};
    return { name, title, unit, better, phrase, help };
  }

  figure(row, name) {
    const { value = null, low = null, high = null, never = 0, after_s: after = null, replications = this.result.replications } = row.figures[name] ?? {};
    return { value, low, high, never, after, replications };
  }
}
