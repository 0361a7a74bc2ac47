// What is shown, as one value that the address carries: a spike, a culprit or boxes of the picture
// of culprits, the CPUs that are on, the stretch of time. A link to it is what the address bar has.

const data = JSON.parse(document.getElementById('onbeat-spikes').textContent);
const text = (place) => data.texts[place];
const cpus = [...new Set([...data.cpus.map((one) => one.cpu), ...data.spikes.map((one) => one.cpu)])];
cpus.sort((a, b) => a - b);
const columns = Math.max(0, ...data.cpus.map((one) => one.max.length));
const END = Math.max(columns * data.column, ...data.spikes.map((spike) => spike.at), 1);

const state = { spike: -1, culprit: -1, boxes: null, off: new Set(), from: 0, to: END };
const listeners = [];
const extent = () => state.to - state.from;

/** Changes what is shown, and the address with it. */
function show(change) {
  Object.assign(state, change);
  if (!(extent() > 0 && extent() < END)) [state.from, state.to] = [0, END];
  const words = address();
  try {
    history.replaceState(null, '', words || location.pathname + location.search);
  } catch {
    location.hash = words;
  }
  draw();
}

let waiting;
/** All pictures anew, once before the next frame. */
function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    listeners.forEach((listener) => listener());
  });
}

/** The state as the end of an address; empty where nothing was chosen. */
function address() {
  const words = [];
  // The one that opens by itself needs no name: a reader's first Tab would begin at its section.
  if (state.spike >= 0 && state.spike !== data.first) words.push(`spike=${state.spike + 1}`);
  if (state.culprit >= 0) words.push(`culprit=${state.culprit + 1}`);
  if (state.boxes) words.push(`boxes=${state.boxes.join('-')}`);
  if (state.off.size) words.push(`off=${[...state.off].join(',')}`);
  const seconds = (ns) => Math.round(ns / 1e3) / 1e6;
  if (extent() < END) words.push(`time=${seconds(state.from)}-${seconds(state.to)}`);
  return words.length ? `#${words.join('&')}` : '';
}

/** What an address asks for; what it does not name stays, what it cannot mean is left out. */
function asked(hash) {
  const change = {};
  const place = (value, list) => (list[value - 1] ? value - 1 : -1);
  const pair = (value) => value.split('-').map(Number);
  for (const [name, value] of new URLSearchParams(hash.slice(1))) {
    if (name === 'spike') change.spike = place(value, data.spikes);
    if (name === 'culprit') [change.culprit, change.boxes] = [place(value, data.culprits), null];
    if (name === 'boxes') {
      const [first, last] = pair(value);
      [change.culprit, change.boxes] = [-1, first <= last ? [first, last] : null];
    }
    if (name === 'off') change.off = new Set(value.split(',').map(Number).filter((cpu) => cpus.includes(cpu)));
    if (name === 'time') {
      const [from, to] = pair(value);
      if (from < to) [change.from, change.to] = [Math.max(0, from * 1e9), Math.min(END, to * 1e9)];
    }
  }
  return change;
}

/** Shows a stretch of time, within the run. */
function stretch(begin, long, more) {
  const from = Math.min(END - long, Math.max(0, begin));
  show({ from, to: from + long, ...more });
}

/** The stretch made so many times as long around a point of it. */
function zoom(times, around) {
  const long = Math.min(END, Math.max(1e5, extent() * times));
  stretch(around - ((around - state.from) / extent()) * long, long);
}

/** The stretch moved by a part of its length. */
const pan = (share) => stretch(state.from + share * extent(), extent());

let passing = { key: null, spikes: [] };
/** The places of the spikes that the filter and the CPUs let through, latest first. */
function filtered() {
  const key = `${state.culprit} ${state.boxes} ${[...state.off]}`;
  if (passing.key === key) return passing.spikes;
  const [first, last] = state.boxes || [];
  const leaf = (spike) => spike.parts.some((part) => first <= part[6] && part[6] <= last);
  const own = state.culprit >= 0 && new Set(data.culprits[state.culprit].spikes);
  const passes = (spike, place) => !state.off.has(spike.cpu) && (!own || own.has(place)) && (!state.boxes || leaf(spike));
  passing = { key, spikes: [...data.spikes.keys()].filter((place) => passes(data.spikes[place], place)) };
  return passing.spikes;
}
