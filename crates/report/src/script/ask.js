// The parts together: what buttons do, which spikes the filter lets through, the search in the
// picture of culprits, and the address. The buttons and the list of spikes are the page's own.

const middle = () => (state.from + state.to) / 2;
const actions = {
  in: () => zoom(0.5, middle()),
  out: () => zoom(2, middle()),
  left: () => pan(-0.5),
  right: () => pan(0.5),
  whole: () => show({ from: 0, to: END }),
  earlier: () => step(-1),
  later: () => step(1),
  all: () => show({ off: new Set() }),
  none: () => show({ off: new Set(cpus) }),
  unfilter: () => show({ culprit: -1, boxes: null }),
  typical: () => reveal(data.culprits[state.culprit].typical),
};

/** Buttons, bars and rows as the state has them. */
function follow() {
  const rows = every('#ask-list tbody tr');
  let listed = null;
  listeners.push(() => {
    const culprit = data.culprits[state.culprit];
    const box = every('a.box').find((one) => one.hash === `#boxes=${state.boxes?.join('-')}`);
    const name = culprit ? text(culprit.name) : state.boxes ? box?.dataset.path || 'these boxes' : '';
    const passed = filtered();
    get('filter').hidden = !name && !state.off.size;
    get('filter').firstChild.textContent = `${several(passed.length, 'spike', 'spikes')}${name && ` with a part of: ${name}`} `;
    section.querySelector('[data-act=typical]').hidden = !(culprit?.typical >= 0);
    every('[data-cpu]').forEach((one) => one.setAttribute('aria-pressed', !state.off.has(+one.dataset.cpu)));
    every('a.bar').forEach((bar, at) => bar.setAttribute('aria-current', at === state.culprit));
    if (listed === passed) return;
    listed = passed;
    const own = new Set(passed);
    rows.forEach((row, at) => { row.hidden = !own.has(at); });
  });
}

/** Boxes whose path has the words stay, others fade; what they took together. */
function search(flame) {
  const told = make('span', { class: 'muted' });
  const field = make('input', { type: 'search', placeholder: 'kind, name, function', 'aria-label': 'search' });
  const boxes = every('a.box', flame);
  field.addEventListener('input', () => {
    const words = field.value.trim().toLowerCase();
    const found = boxes.filter((box) => box.dataset.path.toLowerCase().includes(words));
    boxes.forEach((box) => box.classList.toggle('faded', !found.includes(box)));
    // The picture is there in two sizes, and a box within a found one has its time counted already.
    const once = found.filter((box) => box.closest('svg.wide') && !found.some((one) => box.dataset.path.startsWith(`${one.dataset.path} > `)));
    const sum = once.reduce((all, box) => all + +box.dataset.ns, 0);
    const whole = data.spikes.reduce((all, spike) => all + spike.late, 0);
    told.textContent = words && ` ${span(sum)}, ${percent(sum, whole)} of all`;
  });
  flame.prepend(make('p', { class: 'tools' }, field, told));
}

const section = document.getElementById('ask');
timeline(get('time'));
panel(get('spike'));
follow();
search(document.getElementById('flame'));
section.addEventListener('click', ({ target: { dataset } }) => {
  if (dataset.act) actions[dataset.act]();
  if (dataset.cpu === undefined) return;
  const off = new Set(state.off);
  if (!off.delete(+dataset.cpu)) off.add(+dataset.cpu);
  show({ off });
});
addEventListener('hashchange', () => {
  const change = asked(location.hash);
  if (change.spike >= 0) section.scrollIntoView({ block: 'nearest' });
  show(change);
});
addEventListener('resize', draw);
section.hidden = false;
get('list').open = false;
document.documentElement.classList.add('asked');
show({ spike: data.first, ...asked(location.hash) });
