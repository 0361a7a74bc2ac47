// The largest latency over time, every spike a point on it: pointed at it says what is there, and
// a click opens the spike. Plain wheel and swipe are left to the page.

const HIGH = 250;
const LEFT = 74;
const [INK, MUTED, GRID, GROUND, ALARM] = ['ink', 'muted', 'grid', 'ground', 'alarm'].map((name) => `var(--${name})`);
const colour = (cpu) => `var(--line${cpus.length > 8 ? 1 : cpus.indexOf(cpu)})`;

/** The picture, which draws itself anew whenever what is shown changes. */
function timeline(place) {
  const svg = make('svg', { class: 'time', role: 'group', tabindex: 0, height: HIGH + 46,
    'aria-label': 'Largest latency over time, each spike a point. Arrows: next spike; + and -: zoom; 0: all.' });
  const layers = { back: make('g'), lines: make('g'), points: make('g'), hair: make('g') };
  svg.append(...Object.values(layers));
  let right = 900;
  const x = (ns) => LEFT + ((ns - state.from) / extent()) * (right - LEFT);
  const time = (at) => state.from + ((at - LEFT) / (right - LEFT)) * extent();
  const all = data.cpus.flatMap((one) => one.max).filter((max) => max > 0).concat(data.spikes.map((spike) => spike.late), data.over || []);
  const low = 10 ** Math.floor(Math.log10(all.reduce((a, b) => Math.min(a, b), 1e3)));
  const high = 10 ** Math.ceil(Math.log10(all.reduce((a, b) => Math.max(a, b), 8e6) * 1.1));
  const y = (ns) => 8 + (1 - Math.log(Math.max(ns, low) / low) / Math.log(high / low)) * (HIGH - 8);

  /** The maxima of a CPU in steps, several columns to a pixel as their largest. */
  function stairs(max) {
    const join = Math.max(1, Math.floor(extent() / data.column / (right - LEFT)));
    const first = Math.max(0, Math.floor(state.from / data.column / join) * join);
    const end = Math.min(max.length, Math.ceil(state.to / data.column));
    let words = '';
    for (let at = first, open = false; at < end; at += join) {
      let most = -1;
      for (let one = at; one < Math.min(at + join, end); one += 1) most = Math.max(most, max[one]);
      const edge = (column) => px(Math.min(right, Math.max(LEFT, x(column * data.column))));
      if (most >= 0) words += `${open ? 'V' : `M${edge(at)} `}${px(y(most))}H${edge(at + join)}`;
      open = most >= 0;
    }
    return words;
  }

  function axes() {
    const parts = [];
    for (let value = low; value <= high * 1.01; value *= 10) {
      parts.push(path(`M${LEFT} ${px(y(value))}H${right}`, GRID), margin(y(value) + 4, span(value), MUTED));
    }
    const ticks = steps(state.from, state.to, Math.max(2, (right - LEFT) / 110));
    for (const tick of ticks) {
      parts.push(path(`M${px(x(tick))} 8V${HIGH}`, GRID),
        written(x(tick), HIGH + 17, 'middle', MUTED, clock(tick, (ticks[1] || END) - ticks[0])));
    }
    parts.push(written((LEFT + right) / 2, HIGH + 36, 'middle', INK, 'since the start'));
    if (data.over) parts.push(path(`M${LEFT} ${px(y(data.over))}H${right}`, ALARM, { 'stroke-dasharray': '6 4' }));
    layers.back.replaceChildren(...parts);
  }

  function lines() {
    const on = data.cpus.filter((one) => !state.off.has(one.cpu));
    const most = [];
    if (on.length > 8) for (const one of on) one.max.forEach((max, at) => { most[at] = Math.max(most[at] ?? -1, max); });
    layers.lines.replaceChildren(...(on.length > 8 ? [path(stairs(most), MUTED)] : on.map((one) => path(stairs(one.max), colour(one.cpu)))));
  }

  function points() {
    const passed = new Set(filtered());
    const dots = new Map([['var(--band)', '']]);
    data.spikes.forEach((spike, place) => {
      if (spike.at < state.from || spike.at > state.to || state.off.has(spike.cpu)) return;
      const of = passed.has(place) ? colour(spike.cpu) : 'var(--band)';
      dots.set(of, `${dots.get(of) ?? ''}M${px(x(spike.at))} ${px(y(spike.late))}h0`);
    });
    // A stroke without length and with round ends is a dot: one path draws all of a colour.
    const drawn = (words, of, size) => path(words, of, { 'stroke-width': size, 'stroke-linecap': 'round' });
    layers.points.replaceChildren(...[...dots].flatMap(([of, words]) => [drawn(words, GROUND, 8.5), drawn(words, of, 6.5)]));
    // Over the points, which are many just above it.
    const over = y(data.over);
    if (data.over) layers.points.append(written(right, over + (over > HIGH - 18 ? -6 : 14), 'end', ALARM, `threshold ${span(data.over)}`, { class: 'over' }));
    const spike = data.spikes[state.spike];
    if (spike && spike.at >= state.from && spike.at <= state.to) layers.points.append(ring(spike, ALARM, 2.5));
  }

  const ring = (spike, stroke, width) =>
    make('circle', { cx: px(x(spike.at)), cy: px(y(spike.late)), r: 8, fill: 'none', stroke, 'stroke-width': width });

  /** The spike next to a place, if there is one in reach. */
  function nearest(at, height) {
    let best = [-1, 24 * 24];
    for (const place of filtered()) {
      const spike = data.spikes[place];
      const far = (x(spike.at) - at) ** 2 + (y(spike.late) - height) ** 2;
      if (far < best[1]) best = [place, far];
    }
    return best[0];
  }

  function hair(at, height) {
    if (at < LEFT || at > right) return;
    const when = time(at);
    const column = Math.floor(when / data.column);
    const values = data.cpus.filter((one) => !state.off.has(one.cpu) && one.max[column] >= 0).sort((a, b) => b.max[column] - a.max[column]);
    const told = values.slice(0, 4).map((one) => `CPU ${one.cpu} ${span(one.max[column])}`);
    const near = nearest(at, height);
    const spike = data.spikes[near];
    const words = spike ? ` Spike ${near + 1}: ${span(spike.late)} on CPU ${spike.cpu}, ${text(spike.most)}.` : '';
    get('readout').textContent = `${clock(when, extent() / 100)} after the start: ${told.join(', ') || 'no wake-up'}.${words}`;
    layers.hair.replaceChildren(path(`M${px(at)} 8V${HIGH}M${LEFT} ${px(height)}H${right}`, MUTED, { 'stroke-dasharray': '2 3' }),
      spike ? ring(spike, INK, 1) : '');
  }

  const within = (event) => {
    const box = svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  let drag = {};
  const on = svg.addEventListener.bind(svg);
  on('pointermove', (event) => {
    const [at, height] = within(event);
    if (event.buttons && (drag.moved || Math.abs(at - drag.at) > 4)) {
      const by = (drag.at - at) / (right - LEFT);
      [drag.at, drag.moved] = [at, true];
      pan(by);
    }
    hair(at, height);
  });
  on('pointerdown', (event) => { drag = { at: within(event)[0] }; });
  on('pointerleave', () => layers.hair.replaceChildren());
  on('click', (event) => {
    const near = nearest(...within(event));
    if (!drag.moved && near >= 0) show({ spike: near });
  });
  on('wheel', (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, time(Math.max(LEFT, within(event)[0])));
  }, { passive: false });
  on('keydown', (event) => {
    // The letters are those of other viewers of traces; the page's own keys stay the page's.
    const keys = { ArrowLeft: 'earlier', ArrowRight: 'later', '+': 'in', '-': 'out', 0: 'whole',
      w: 'in', s: 'out', a: 'left', d: 'right' };
    if (event.key === 'Enter') get('heading')?.focus();
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[keys[event.key]]();
  });

  listeners.push(() => {
    right = Math.max(LEFT + 120, place.clientWidth - 26);
    svg.setAttribute('width', right + 26);
    axes();
    lines();
    points();
  });
  place.append(svg);
}

/** The next spike in time, before or after the one that is open. */
function step(by) {
  const order = [...filtered()].sort((a, b) => data.spikes[a].at - data.spikes[b].at);
  const at = order.indexOf(state.spike);
  const next = order[at < 0 ? (by > 0 ? 0 : order.length - 1) : at + by];
  if (next !== undefined) reveal(next);
}

/** Opens a spike, and moves the stretch of time where it lies outside. */
function reveal(place) {
  const { at } = data.spikes[place];
  if (at >= state.from && at <= state.to) show({ spike: place });
  else stretch(at - extent() / 2, extent(), { spike: place });
}
