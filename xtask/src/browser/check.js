// Drives a hunt's page as a reader would, and leaves what it found as text in the page: one line
// per check, "ok" or what was seen instead.

const lines = [];
const check = (name, seen, wanted) => lines.push(`${String(seen) === String(wanted) ? 'ok' : `saw ${seen}, not ${wanted}`}: ${name}`);
const settle = () => new Promise((done) => setTimeout(done, 100));
const one = (words) => document.querySelector(words);
const act = async (name) => { one(`[data-act=${name}]`).click(); await settle(); };
const key = async (name) => { one('svg.time').dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true })); await settle(); };
const heading = () => one('#ask-heading')?.textContent.split(':')[0] || 'none';
const stretch = () => new URLSearchParams(location.hash.slice(1)).get('time');
const rows = () => [...document.querySelectorAll('#ask-list tbody tr')].filter((row) => !row.hidden).length;
const all = document.querySelectorAll('#ask-list tbody tr').length;

/** Where the ring of the open spike is on the screen. */
const ring = () => one('svg.time circle').getBoundingClientRect();

async function go(hash) {
  location.hash = hash;
  await new Promise((done) => setTimeout(done, 50));
  await settle();
}

async function drive() {
  await settle();
  check('the page is asked', document.documentElement.classList.contains('asked'), true);
  check('the latest spike is open', heading(), `Spike 1 of ${all}`);
  check('and not in the address', location.hash, '');
  await go('#spike=2');
  check('an address opens its spike', heading(), `Spike 2 of ${all}`);
  const at = ring();
  await go('#spike=1');
  one('svg.time').dispatchEvent(new MouseEvent('click', { clientX: at.x + at.width / 2, clientY: at.y + at.height / 2, bubbles: true }));
  await settle();
  check('a click on a point opens its spike', heading(), `Spike 2 of ${all}`);
  check('the address follows', location.hash.includes('spike=2'), true);
  const before = heading();
  await key('ArrowRight');
  await key('ArrowLeft');
  check('arrow keys go there and back', heading(), before);
  check('the strip has bars', document.querySelectorAll('#ask-spike svg[role=img] rect').length > 2, true);
  check('evidence is in the table', one('#ask-spike td.wrap').textContent.length > 0, true);
  await key('+');
  check('plus zooms', stretch() !== null, true);
  const first = stretch();
  await act('right');
  check('a button moves the time', stretch() !== first, true);
  await key('w');
  await key('d');
  const moved = stretch();
  await key('a');
  check('letters zoom and move', moved !== null && stretch() !== moved, true);
  await key('0');
  check('0 shows the whole run', stretch(), null);
  one('svg.time').dispatchEvent(new WheelEvent('wheel', { ctrlKey: true, deltaY: -1, clientX: at.x, clientY: at.y, bubbles: true, cancelable: true }));
  await settle();
  check('Ctrl and the wheel zoom', stretch() !== null, true);
  await act('whole');
  one('svg.time').dispatchEvent(new PointerEvent('pointermove', { clientX: at.x + 6, clientY: at.y + 6, bubbles: true }));
  check('the cross-hair has values', /after the start: CPU \d+ .*Spike 2/.test(one('#ask-readout').textContent), true);
  one('a.bar').click();
  await new Promise((done) => setTimeout(done, 50));
  await settle();
  check('a culprit filters', one('#ask-filter').hidden, false);
  check('and says how many', one('#ask-filter').textContent.startsWith(`${rows()} spike`), true);
  await act('unfilter');
  check('all spikes come back', rows(), all);
  const cpu = one('[data-cpu]');
  cpu.click();
  await settle();
  check('a CPU is switched off', `${cpu.getAttribute('aria-pressed')} ${rows() < all}`, 'false true');
  await act('all');
  check('and on', rows(), all);
  one('#flame svg a.box').dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }));
  await new Promise((done) => setTimeout(done, 50));
  await settle();
  check('a box filters', location.hash.includes('boxes='), true);
  await go('#boxes=9999-9999');
  check('no spike is no error', rows(), 0);
  await go('#spike=9999&culprit=x&time=5-1&off=77&boxes=a');
  check('an address that means nothing shows the whole run', stretch(), null);
  await act('unfilter');
  const wide = document.documentElement.scrollWidth <= innerWidth;
  check('nothing is wider than the window', wide, true);
  const answer = one('ol.bars').getBoundingClientRect();
  check('who took the time is on the first screen', answer.bottom + scrollY < 900, true);
}

drive().catch((why) => lines.push(`failed: ${why.stack}`)).finally(() => {
  const result = document.createElement('pre');
  result.id = 'browser-check';
  result.textContent = lines.join('\n');
  document.body.append(result);
});
