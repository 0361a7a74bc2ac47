// The smallest contrast (WCAG 2, 1.4.11) between the point of a screenshot and what is around it,
// some pixels away.

const [shot, x, y, done] = arguments;
const NEAR = 7;
const FAR = 11;
const light = (colour) => {
  const [r, g, b] = [...colour].map((part) => part / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
const image = new Image();
image.src = `data:image/png;base64,${shot}`;
image.decode().then(() => {
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [image.width, image.height];
  const brush = canvas.getContext('2d');
  brush.drawImage(image, 0, 0);
  const side = 2 * FAR + 1;
  const { data } = brush.getImageData(Math.floor(x) - FAR, Math.floor(y) - FAR, side, side);
  const at = (dx, dy) => {
    const first = 4 * ((dy + FAR) * side + dx + FAR);
    return light(data.slice(first, first + 3));
  };
  const point = at(0, 0);
  const around = [];
  for (let dx = -FAR; dx <= FAR; dx += 1) {
    for (let dy = -FAR; dy <= FAR; dy += 1) {
      if (Math.max(Math.abs(dx), Math.abs(dy)) >= NEAR) around.push(at(dx, dy));
    }
  }
  done(Math.min(...around.map((one) => contrast(point, one))));
}, (why) => done(String(why)));
