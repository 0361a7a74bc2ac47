// What holds for every page: the answer on the first screen, nothing wider than the window, no
// request, and what a reader without a mouse or without eyes needs. One line per check.

const lines = [];
const check = (name, wrong) => lines.push(`${wrong.length ? `${wrong.slice(0, 4).join(', ')}${wrong.length > 4 ? ', ...' : ''}` : 'ok'}: ${name}`);
const all = (words) => [...document.querySelectorAll(words)];
const shown = (node) => node.checkVisibility();
const told = (node) => `${node.tagName.toLowerCase()} ${(node.textContent || node.id).trim().slice(0, 30)}`;
const low = (node) => node.getBoundingClientRect().bottom + scrollY;

// On a telephone the words are there, one below the other; the screen is that of a computer.
const wide = innerWidth > 640;
const answers = all('.lead, .next, ol.bars, ol.named');
check('there is an answer', all('.lead').length ? [] : ['none']);
check('the answer is on the first screen', answers.slice(0, 4).filter((node) => wide && low(node) > 900).map(told));
check('the page is no wider than the window', document.documentElement.scrollWidth > innerWidth ? [document.documentElement.scrollWidth] : []);
check('no table is', all('.scroll').filter((node) => shown(node) && !node.querySelector('pre') && node.scrollWidth > node.clientWidth + 1)
  .map((node) => `${node.getAttribute('aria-label')} ${node.scrollWidth} in ${node.clientWidth}`));
/** The height of what is in a cell, however high its row is. */
const height = (node) => {
  const range = document.createRange();
  range.selectNodeContents(node);
  return range.getBoundingClientRect().height;
};
check('no text stands on its edge', all('th, td').filter((node) => shown(node) && node.clientWidth < 80 && height(node) > 160).map(told));
check('nothing was requested', performance.getEntriesByType('resource').map((one) => one.name));

const name = (node) => (node.getAttribute('aria-label') || node.textContent || node.labels?.[0]?.textContent || node.title || '').trim();
check('buttons, links and fields have names', all('button, a[href], input:not([type=hidden]), summary').filter((node) => !name(node)).map(told));
check('pictures have words', all('svg[role=img], figure svg').filter((node) => !node.closest('[aria-hidden]') && !node.getAttribute('aria-label')).map(told));
check('groups and regions have names', all('[role=region], [role=group], section.ask').filter((node) => !node.getAttribute('aria-label')).map(told));
check('the order of focus is that of the page', all('[tabindex]').filter((node) => node.tabIndex > 0).map(told));
const ids = all('[id]').map((node) => node.id);
check('ids are there once', ids.filter((id, at) => ids.indexOf(id) !== at));
check('links within lead somewhere', all('a[href^="#"]').map((node) => node.getAttribute('href')).filter((to) => !to.includes('=') && !document.getElementById(to.slice(1))));
const levels = all('h1, h2, h3, h4').filter(shown).map((node) => Number(node.tagName[1]));
check('no level of headings is left out', levels.filter((level, at) => at && level > levels[at - 1] + 1).map(String));
check('tables have heads', all('table').filter((node) => !node.querySelector('th')).map(told));
check('it is in English, and says so', document.documentElement.lang === 'en' ? [] : ['no language']);

/** The relative luminance of a colour as `rgb(...)`, and the contrast of two (WCAG 2, 1.4.3). */
const light = (colour) => {
  const [r, g, b] = colour.match(/[\d.]+/g).slice(0, 3).map((part) => part / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (node) => {
  for (let one = node; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (!/, 0\)$|transparent/.test(colour)) return colour;
  }
  return 'rgb(255, 255, 255)';
};
const contrast = (node) => {
  const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
};
check('text is read on its ground', all('p, li, dt, dd, th, td, h1, h2, h3, button, summary, .badge').filter((node) => shown(node) && contrast(node) < 4.5).map(told));

const result = document.createElement('pre');
result.id = `browser-check${window.name}`;
result.textContent = lines.join('\n');
top.document.body.append(result);
