// The checks of the answer on top of a report, by rules that share nothing with the code that writes it.
import { answer } from './inspect.mjs';
import { agrees } from './shown.mjs';

const figureOf = (result, { variant, point, metric }) =>
  result.rows.find((row) => row.variant === variant && row.point === Number(point))?.figures[metric] ?? { value: null };

// Whether figure `a` is better than `b` by more than chance: 1 if so, -1 if it is worse, 0 if neither.
function compare(a, b, better) {
  if (better === '' || (a.value === null && b.value === null)) return 0;
  if (a.value === null || b.value === null) return a.value === null ? -1 : 1;
  const apart = Number.isFinite(a.low) && Number.isFinite(b.low) ? a.low > b.high || b.low > a.high : a.value !== b.value;
  if (!apart) return 0;
  return (a.value < b.value) === (better === 'less') ? 1 : -1;
}

function checkSaid(check, result, { said }) {
  for (const { metric, variant, point, text } of said) {
    const { value, never = 0, after_s: after } = figureOf(result, { variant, point, metric });
    const unit = result.metrics[metric].unit;
    const where = `the answer says '${text}' for ${metric} of '${variant}' at ${point}`;
    if (value === null && never > 0) check(text.startsWith('more than ') && agrees(text.slice(10), after, 's'), `${where}; it was not seen in ${after} s`);
    else if (value === null) check(!/[0-9]/.test(text), `${where}; the JSON has no value`);
    else check(agrees(text, value, unit.startsWith('/') ? '' : unit), `${where}; the JSON has ${value} ${unit}`);
  }
}

// The clause around each figure is that of its metric.
function checkPhrases(check, result, { said, text }) {
  for (const { metric, text: value } of said) {
    const [before, after = ''] = (result.metrics[metric].phrase ?? '{}').split('{}');
    const words = [before, after.replace(/s$/, '')].map((part) => part.trim().toLowerCase());
    check(words.every((part) => text.toLowerCase().includes(part)), `the answer '${text}' does not say of ${value}: '${result.metrics[metric].phrase}'`);
  }
}

function checkVariants(check, result, point, { said, names, text }) {
  const rows = result.rows.filter((row) => row.point === point);
  if (rows.length < 2) return;
  check(said.every((entry) => Number(entry.point) === point), `the answer '${text}' is of another point than ${point}`);
  check(!result.sweep || text.includes(result.sweep.values[point]), `the answer '${text}' does not name the point ${result.sweep?.values[point]}`);
  const [best, worst] = names;
  const of = (variant, metric) => figureOf(result, { variant, point, metric });
  const metricsOf = (variant) => said.filter((entry) => entry.variant === variant).map(({ metric }) => metric);
  const told = metricsOf(best);
  check(told.length > 0 && told.length <= 3 && told.every((metric) => result.headline.includes(metric)), `the answer tells ${told} of ${best}`);
  for (const { variant } of rows) {
    const verdicts = told.map((metric) => compare(of(variant, metric), of(best, metric), result.metrics[metric].better));
    check(!(verdicts.every((verdict) => verdict >= 0) && verdicts.some((verdict) => verdict > 0)) || isYardstick(result, variant),
      `the answer names ${best} as the best; ${variant} is better in what it tells`);
  }
  if (worst === undefined) {
    const apart = rows.filter(({ variant }) => !isYardstick(result, variant) && told.some((metric) => compare(of(best, metric), of(variant, metric), result.metrics[metric].better) !== 0));
    check(apart.length === 0 || !/no variant differs/i.test(text), `the answer '${text}' finds no difference to ${apart.map(({ variant }) => variant)}`);
    return;
  }
  check(metricsOf(worst).length > 0, `the answer says nothing of ${worst}`);
  for (const metric of metricsOf(worst)) {
    check(compare(of(worst, metric), of(best, metric), result.metrics[metric].better) < 0, `${worst} is not worse than ${best} in ${metric}: '${text}'`);
  }
}

const isYardstick = (result, variant) => (result.expectations ?? []).some(({ of }) => of === variant);

function checkVerdict(check, result, verdict) {
  const entries = [...(result.expectations ?? []), ...(result.judges ?? [])];
  const worst = ['fails', 'objects', 'undecided'].find((status) => entries.some((entry) => entry.status === status));
  if (worst === undefined) return check(result.verdict !== 'holds' || verdict === null, `everything holds, and the answer says '${verdict?.text}'`);
  const words = { fails: 'It fails', objects: 'objects', undecided: 'It is not decided' }[worst];
  check(verdict !== null && verdict.text.includes(words), `the answer should begin with '${words}', for something ${worst}; it says '${verdict?.text}'`);
  const named = entries.filter((entry) => entry.status === worst).some(({ variant, point }) =>
    (!variant || verdict?.names.includes(variant)) && (!result.sweep || !Number.isInteger(point) || verdict?.text.includes(result.sweep.values[point])));
  check(named, `the answer '${verdict?.text}' names no variant and point for which something ${worst}`);
  const more = entries.filter(({ status }) => ['fails', 'objects', 'undecided'].includes(status)).length - 1;
  const counted = [...(verdict?.text ?? '').matchAll(/(\d+) (?:more )?(?:expectation|judgement)s?/g)].reduce((sum, [, count]) => sum + Number(count), 0);
  check(counted === more, `the answer '${verdict?.text}' counts ${counted} more that do not hold; there are ${more}`);
}

export async function checkAnswer(check, page, result, point) {
  const found = await page.evaluate(answer);
  const hasFigures = result.rows.some((row) => result.headline.some((name) => row.figures[name]?.value !== null && row.figures[name] !== undefined));
  if (found === null) return check(!hasFigures && result.verdict === 'holds', 'the page has no answer');
  check(found.isOnTop, 'the answer does not stand on top, under the question');
  checkVerdict(check, result, found.verdict);
  if (hasFigures) check(/^[^a-z].*\.$/.test(found.figures.text.trim()), `the answer is no sentence: '${found.figures.text}'`);
  for (const part of [found.verdict, found.figures].filter(Boolean)) {
    checkSaid(check, result, part);
    checkPhrases(check, result, part);
  }
  checkVariants(check, result, point, found.figures);
}
