// Clicks points and zooms, one act after the other, each with a mark before it and one after it was
// drawn.

const drawn = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));

async function act(name, at, act) {
  performance.mark(`${name}-${at}`);
  act();
  await drawn();
  performance.mark(`settled-${name}-${at}`);
  await new Promise((done) => setTimeout(done, 30));
}

async function drive() {
  while (!document.documentElement.classList.contains('asked')) await drawn();
  await new Promise((done) => setTimeout(done, 500));
  const time = document.querySelector('svg.time');
  const box = time.getBoundingClientRect();
  for (let at = 0; at < ACTS; at += 1) {
    await act('click', at, () => {
      const x = box.left + 90 + ((at * 7919) % 1000) * (box.width - 130) / 1000;
      time.dispatchEvent(new MouseEvent('click', { clientX: x, clientY: time.getBoundingClientRect().top + 60, bubbles: true }));
      document.querySelector('[data-act=later]').click();
    });
  }
  for (let at = 0; at < ACTS; at += 1) {
    await act('zoom', at, () => document.querySelector(at % 8 < 4 ? '[data-act=in]' : '[data-act=out]').click());
  }
}

drive();
