// Elements, numbers and sentences as the rest of the page has them. Names of threads, functions and
// devices are chosen by others: they only ever become text, never markup.

const SVG = 'http:' + '//www.w3.org/2000/svg';
const DRAWN = ['svg', 'g', 'path', 'rect', 'circle', 'text', 'title'];

/** An element with attributes and children; strings become text. */
function make(tag, attributes, ...children) {
  const node = DRAWN.includes(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child !== undefined && child !== ''));
  return node;
}

const path = (d, stroke, more) => make('path', { d, stroke, fill: 'none', ...more });
const written = (x, y, anchor, fill, words, more) =>
  make('text', { x: px(x), y: px(y), 'text-anchor': anchor, fill, ...more }, words);
const margin = (y, words, fill = INK) => written(LEFT - 7, y, 'end', fill, words);
const filled = (look, box) => make('g', {}, [look.fill, look.hatch].map((fill, over) => fill && make('rect', { ...box, fill, 'fill-opacity': over || look.strength })));
const every = (words, place = document) => [...place.querySelectorAll(words)];
const get = (id) => document.getElementById(`ask-${id}`);
const cell = (sort, ...children) => make('td', { class: sort }, ...children);

/** A table whose heads are to the left from one on. */
function table(heads, left, body) {
  return make('div', { class: 'scroll cards' }, make('table', {}, make('thead', {}, make('tr', {},
    heads.map((head, at) => make('th', { class: at >= left && 'left' }, head)))), body));
}

/** A latency with its unit: 41.3 us. */
function span(ns) {
  for (const [unit, name] of [[1e9, 's'], [1e6, 'ms'], [1e3, 'us']]) {
    const value = ns / unit;
    const size = Math.abs(value);
    if (size < 1) continue;
    const digits = Number.isInteger(value) || size >= 100 ? 0 : size < 10 ? 2 : 1;
    return `${value.toFixed(digits)} ${name}`;
  }
  return `${Math.round(ns)} ns`;
}

/** A time since the start, so that times that are a step apart differ: 12.5 s, 3:05:20 h. */
function clock(ns, step) {
  const seconds = ns / 1e9;
  const digits = Math.min(6, Math.max(0, -Math.floor(Math.log10(step / 1e9) + 1e-9)));
  if (Math.abs(seconds) < 100) return `${seconds.toFixed(digits)} s`;
  const whole = Math.floor(seconds);
  const rest = (seconds - whole).toFixed(digits).slice(1);
  const two = (number) => String(number).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)}:${two(whole % 60)}${rest} min`;
  return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}${rest} h`;
}

/** A share of a whole: 0.4 %, 61 %. */
function percent(part, whole) {
  const share = whole > 0 ? 100 * part / whole : 0;
  return `${share > 0 && share < 0.95 ? share.toFixed(1) : Math.round(share)} %`;
}

const several = (number, one, many) => `${number} ${number === 1 ? one : many}`;

/** A sentence whose words between back-ticks are code. */
function prose(text) {
  const parts = text.split('`');
  if (parts.length % 2 === 0) return [text];
  return parts.map((part, at) => (at % 2 ? make('code', {}, part) : part));
}

/** The least of 1, 2, 5, 10, ... that is not below a value. */
function nice(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((one) => one * power >= value * 0.999999);
}

/** Round steps of time, in seconds, about so many in a stretch of nanoseconds. */
function steps(from, to, about) {
  const min = (to - from) / 1e9 / about;
  const long = [60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 604800];
  const step = (min > 30 && long.find((one) => one >= min)) || nice(min);
  const all = [];
  for (let at = Math.ceil(from / 1e9 / step); at * step <= to / 1e9; at += 1) all.push(Math.round(at * step * 1e9));
  return all;
}

/** What a line of text takes; on the safe side. */
const wide = (words) => [...words].length * 6.9;

/** A coordinate with one decimal. */
const px = (value) => Math.round(value * 10) / 10;
