// One spike: its strip from the time at which the thread should have run, what every CPU did
// meanwhile where that is kept, and its parts as rows with evidence and stacks.

const BAR = 32;
const LANE = 18;

const partsOf = (spike) => spike.parts.map(([start, ns, kind, who, evidence, stack]) =>
  ({ start, ns, kind: data.kinds[kind], who: text(who), evidence: text(evidence), stack }));

const swatch = (look) => make('svg', { class: 'swatch', viewBox: '0 0 12 12', 'aria-hidden': 'true' },
  filled(look, { x: 0.5, y: 0.5, width: 11, height: 11, stroke: look.fill }));

const over = (look) => (look.strength > 0.74 ? GROUND : INK);
/** What keeps words off the lines of a hatch: its colour around them. */
const halo = (look) => (look.hatch ? { stroke: look.fill, 'stroke-width': 4, 'paint-order': 'stroke' } : {});

/** Bars on a scale; labels without room inside go below, from the last on, so that no stroke crosses one. */
function strip(parts, scale, top, right) {
  const nodes = [];
  const placed = [];
  for (const part of [...parts].reverse()) {
    const from = scale(part.start);
    const width = Math.max(1.6, scale(part.start + part.ns) - from);
    const middle = from + width / 2;
    const name = `${part.kind.name} ${span(part.ns)}`;
    const long = part.who && `${part.kind.name}: ${part.who.replace(/ \([^)]*\)/, '')}, ${span(part.ns)}`;
    const inside = [long, name].find((words) => words && wide(words) + 8 <= width);
    nodes.push(make('g', {}, make('title', {}, `${name} from +${span(part.start)} on; ${part.who} ${part.evidence}`),
      filled(part.kind, { x: px(from), y: top, width: px(width), height: BAR, stroke: part.kind.fill,
        'stroke-dasharray': part.kind.name === 'unexplained' && '3 3' }),
      inside ? written(middle, top + BAR / 2 + 4.5, 'middle', over(part.kind), inside, { 'font-weight': 600, ...halo(part.kind) }) : ''));
    if (inside) continue;
    const at = middle + (middle + wide(name) > right ? 4 - wide(name) : -4);
    const to = at + wide(name);
    const met = placed.filter((it) => it.to + 8 > at && it.at - 8 < to);
    const row = Math.max(0, ...met.map((it) => it.row + 1));
    if (row > 2 || met.some((it) => it.at < middle && middle < it.to)) continue;
    placed.push({ row, at, to });
    const foot = top + BAR + 5 + row * 15;
    nodes.push(path(`M${px(middle)} ${top + BAR}V${foot}`, MUTED), written(at, foot + 10, 'start', INK, name));
  }
  return [nodes, BAR + Math.max(4, ...placed.map(({ row }) => 23 + row * 15))];
}

/** Names of points in time above a strip; those too close together share a line of text. */
function pins(marks, scale, top, right) {
  const nodes = [];
  let last;
  for (const [name, ns] of marks) {
    const at = scale(ns);
    nodes.push(path(`M${px(at)} ${top + 15}v7`, INK));
    const from = Math.min(at - wide(name) / 2, right - wide(name));
    if (last && last.from + wide(last.node.textContent) + 8 > from) {
      last.node.textContent += `, ${name}`;
      last.from = Math.min(last.from, right - wide(last.node.textContent));
      last.node.setAttribute('x', px(last.from));
    } else {
      last = { from, node: written(from, top + 11, 'start', INK, name) };
      nodes.push(last.node);
    }
  }
  return nodes;
}

/** The parts after the last large one, where they are too small to be read. */
function tail(parts, late) {
  const large = parts.map((part) => part.ns >= 0.1 * late).lastIndexOf(true);
  const rest = parts.slice(large + 1);
  return rest.length > 1 && late - rest[0].start < 0.15 * late ? rest : [];
}

function picture(spike, width) {
  const right = width - 14;
  const scale = (from, to, left, end) => (ns) => left + Math.max(0, Math.min(1, (ns - from) / (to - from))) * (end - left);
  const main = scale(-0.03 * spike.late, 1.03 * spike.late, LEFT, right);
  const parts = partsOf(spike);
  const rest = tail(parts, spike.late);
  const until = rest.length ? rest[0].start : Infinity;
  const marks = spike.marks.map(([name, ns]) => [text(name), ns]);
  const [bars, high] = strip(parts.filter((part) => part.start < until), main, 24, right);
  const nodes = [margin(40, `CPU ${spike.cpu}`), margin(54, 'late', MUTED),
    ...pins(marks.filter((mark) => mark[1] < until || mark[1] >= spike.late), main, 0, right), ...bars];
  let top = 24 + high;
  if (rest.length) {
    const left = LEFT + (right - LEFT) / 4;
    const larger = scale(until, spike.late, left, right - 4);
    const below = top + 12;
    nodes.unshift(path(`M${px(main(until))} ${24 + BAR}L${px(left)} ${below}V${below + 23}H${px(right - 4)}V${below}L${px(main(spike.late))} ${24 + BAR}Z`, GRID, { fill: GRID }));
    nodes.push(...strip(rest, main, 24, right)[0].filter((node) => node.tagName === 'g'),
      written(left - 7, below + 38, 'end', MUTED, `last ${span(spike.late - until)}`), written(left - 7, below + 52, 'end', MUTED, 'enlarged'),
      ...pins(marks.filter((mark) => mark[1] >= until), larger, below, right));
    const [more, height] = strip(rest, larger, below + 24, right);
    nodes.push(...more);
    top = below + 24 + height;
  }
  for (const lane of spike.lanes || []) {
    top += 5;
    nodes.push(...stretches(lane, main, top, right));
    top += LANE;
  }
  nodes.push(...foot(spike, main, top + 6, right));
  return make('svg', { width, height: top + 48, role: 'img',
    'aria-label': `CPU ${spike.cpu}: ${span(spike.late)} late, in ${several(parts.length, 'part', 'parts')}; the table has the same.` }, ...nodes);
}

/** What one CPU did. */
function stretches(lane, scale, top, right) {
  const [cpu, ...parts] = lane;
  const nodes = [margin(top + 13, `CPU ${cpu}`), path(`M${LEFT} ${top + LANE / 2}H${right}`, GRID)];
  for (const [start, ns, place, label] of parts) {
    const look = data.looks[place] || { fill: GROUND, strength: 0 };
    const from = scale(start);
    const width = Math.max(1.2, scale(start + ns) - from);
    const words = text(label);
    const box = { x: px(from), y: top, width: px(width), height: LANE };
    nodes.push(make('g', {}, make('title', {}, `${words}: ${span(ns)} from +${span(start)} on`),
      place >= 0 ? make('rect', { ...box, fill: GROUND }) : '', filled(look, box),
      place >= 0 && wide(words) + 6 <= width ? written(from + width / 2, top + 13, 'middle', over(look), words) : ''));
  }
  return nodes;
}

function foot(spike, scale, top, right) {
  const ticks = steps(0, spike.late, Math.max(2, (right - LEFT) / 90));
  return [path(`M${LEFT} ${top}H${right}${ticks.map((ns) => `M${px(scale(ns))} ${top}v4`).join('')}`, MUTED),
    ...ticks.map((ns) => written(scale(ns), top + 16, 'middle', MUTED, span(ns))),
    written((LEFT + right) / 2, top + 33, 'middle', INK, `since ${text(spike.since)}`)];
}

function keys(spike) {
  const looks = [...new Set(partsOf(spike).map((part) => part.kind))].map((kind) => [kind, `${kind.name}: ${kind.words}`]);
  const seen = new Set((spike.lanes || []).flatMap((lane) => lane.slice(1).map((one) => one[2])));
  data.looks.forEach((look, place) => seen.has(place) && looks.push([look, look.words]));
  return make('p', { class: 'keys' }, looks.map(([look, words]) => make('span', {}, swatch(look), ` ${words}`)));
}

/** Who took most of many small parts. */
function owners(parts) {
  const sums = new Map();
  for (const part of parts) {
    const name = `${part.kind.name} ${part.who}`.trim();
    sums.set(name, (sums.get(name) || 0) + part.ns);
  }
  const most = [...sums].sort((a, b) => b[1] - a[1]);
  return most.slice(0, 3).map(([name, ns]) => `${name} ${span(ns)}`).join('; ');
}

function rows(spike) {
  const row = (part) => make('tr', {}, cell('more', (part.start / 1e3).toFixed(1)), cell('top', (part.ns / 1e3).toFixed(1)),
    cell('', percent(part.ns, spike.late)), cell('left', swatch(part.kind), ` ${part.kind.name}`), cell('wrap', part.who),
    cell('wrap', prose(part.evidence), part.stack < 0 ? '' : make('details', {}, make('summary', {}, 'stack, innermost first'), make('pre', {}, text(part.stack)))));
  // Which parts are small depends on the reader: they are there, one click away.
  const parts = partsOf(spike);
  const large = (part) => part.ns >= 0.01 * spike.late;
  const small = parts.filter((part) => !large(part));
  const told = (some) => table(['from, us', 'length, us', 'share', 'kind', 'who', 'evidence'], 3, make('tbody', {}, some.map(row)));
  if (!parts.some(large) || !small.length) return [told(parts)];
  const sum = small.reduce((all, part) => all + part.ns, 0);
  return [told(parts.filter(large)), make('details', {},
    make('summary', {}, `${several(small.length, 'part', 'parts')} under 1 %, ${span(sum)} together: `, owners(small)),
    told(small))];
}

/** The open spike below the picture. */
function panel(place) {
  let shown;
  listeners.push(() => {
    const width = Math.max(320, place.clientWidth);
    const key = `${state.spike} ${width}`;
    if (key === shown) return;
    shown = key;
    const spike = data.spikes[state.spike];
    if (!spike) return place.replaceChildren();
    const when = text(spike.when);
    const typical = data.culprits.filter((one) => one.typical === state.spike).map((one) => text(one.name)).join('; ');
    place.replaceChildren(make('h3', { id: 'ask-heading', tabindex: -1 },
      `Spike ${state.spike + 1} of ${data.spikes.length}: ${text(spike.told)} on CPU ${spike.cpu}${when && `, ${when}`}: ${text(spike.classes)}`),
    typical && make('p', {}, `Typical of: ${typical}.`),
    make('figure', {}, picture(spike, width)), keys(spike), ...rows(spike),
    ...(spike.notes || []).map((note) => make('p', { class: 'muted' }, prose(text(note)))),
    spike.lanes ? '' : make('p', { class: 'muted' }, 'The activity of the other CPUs is not stored here.'));
  });
}
