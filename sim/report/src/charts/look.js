// What charts take from the page's style sheet, so that both follow the reader's light or dark scheme.
import { format } from 'echarts/core';

export const symbols = ['circle', 'rect', 'triangle', 'diamond', 'emptyCircle', 'emptyRect', 'emptyTriangle', 'emptyDiamond'];
const paletteSize = 8;

export function currentLook(width, printing = false) {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    width,
    narrow: width < 480,
    printing,
    text: color('text'),
    muted: color('muted'),
    line: color('line'),
    surface: color('surface'),
    fault: color('fault'),
    warmup: color('warmup'),
    bad: color('bad'),
    palette: Array.from({ length: paletteSize }, (_, index) => color(`series-${index + 1}`)),
    font: style.getPropertyValue('--font').trim(),
  };
}

// The colour, symbol and dash of the n-th variant. Beyond eight variants the dash tells two of one colour apart.
export function strokeOf(look, index) {
  return {
    color: look.palette[index % paletteSize],
    symbol: symbols[index % symbols.length],
    dash: ['solid', [7, 4], [2, 3]][Math.floor(index / paletteSize) % 3],
  };
}

// What all charts share. `tooltip` gives the lines of one. No animation: a print or a screenshot shows the final state.
export function baseOption(look, description, trigger, tooltip) {
  return {
    animation: false,
    textStyle: { fontFamily: look.font, color: look.text },
    aria: { enabled: true, label: { description } },
    legend: { show: false },
    tooltip: {
      trigger,
      formatter: tooltip,
      confine: true,
      backgroundColor: look.surface,
      borderColor: look.line,
      textStyle: { color: look.text, fontSize: 12 },
      axisPointer: { lineStyle: { color: look.muted }, label: { show: false } },
    },
  };
}

export function axis(look, rest = {}) {
  const { axisLabel = {}, ...others } = rest;
  return {
    axisLine: { show: true, lineStyle: { color: look.muted } },
    axisTick: { show: true, lineStyle: { color: look.muted } },
    splitLine: { show: false },
    nameTextStyle: { color: look.muted, fontSize: 12 },
    axisLabel: { color: look.muted, fontSize: 12, hideOverlap: true, ...axisLabel },
    ...others,
  };
}

// A vertical axis with grid lines and its name on top, flush with the labels' left edge.
export function valueAxis(look, name, rest = {}) {
  return axis(look, {
    type: 'value',
    name,
    nameLocation: 'end',
    nameGap: 10,
    nameTextStyle: { color: look.muted, fontSize: 12, align: 'left', padding: [0, 0, 0, -labelWidth + 8] },
    axisLine: { show: false },
    axisTick: { show: false },
    splitLine: { show: true, lineStyle: { color: look.line } },
    ...rest,
  });
}

export const labelWidth = 64;

// Heading and lines of a tooltip; a line is [colour, name, value].
export function tooltipText(heading, lines) {
  const { encodeHTML, getTooltipMarker } = format;
  const rows = lines.map(([color, name, value]) =>
    `<tr><td>${getTooltipMarker(color)}${encodeHTML(name)}</td>` +
    `<td style="text-align:right;padding-left:14px"><b>${encodeHTML(value)}</b></td></tr>`);
  return `<div>${encodeHTML(heading)}</div><table style="font:inherit;color:inherit;border-spacing:0">${rows.join('')}</table>`;
}
