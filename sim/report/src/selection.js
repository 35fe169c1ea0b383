// The sweep point that the page shows. Without a sweep it is always point 0.

export class Selection {
  #listeners = [];

  constructor(point) {
    this.point = point;
  }

  onChange(listener) {
    this.#listeners.push(listener);
  }

  select(point) {
    this.point = point;
    for (const listener of this.#listeners) listener();
  }
}
