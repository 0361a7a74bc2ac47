// Of the heat map that is seen: the middle of its highest dot in the window, how many dots there
// are, and the words of the picture.

const maps = document.querySelectorAll('figure svg[aria-label^="Latency over"]');
const map = [...maps].find((one) => one.checkVisibility());
map.scrollIntoView({ block: 'center' });
const path = [...map.querySelectorAll('path')].filter((one) => one.getAttribute('stroke-width') === '1').at(-1);
const corners = [...path.getAttribute('d').matchAll(/M([\d.]+) ([\d.]+)h([\d.]+)/g)];
const dots = corners.map(([, x, y, side]) => new DOMPoint(+x + side / 2, +y + side / 2));
const highest = dots.reduce((a, b) => (b.y < a.y ? b : a)).matrixTransform(path.getScreenCTM());
return [highest.x, highest.y, dots.length, map.getAttribute('aria-label')];
