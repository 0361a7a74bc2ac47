// Buttons that copy a block, and sources that can be followed: what stands on the page as text.
// Without this a click on a block selects all of it, and the addresses are there to be read.

for (const block of document.querySelectorAll('pre.copy')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = 'copy';
  button.addEventListener('click', async () => {
    getSelection().selectAllChildren(block);
    const copied = await navigator.clipboard?.writeText(block.textContent).then(() => true, () => false);
    button.textContent = copied || document.execCommand('copy') ? 'copied' : 'selected: Ctrl+C copies it';
  });
  block.before(button);
}

for (const place of document.querySelectorAll('.source')) {
  const link = document.createElement('a');
  link.href = `https:${'//'}${place.textContent}`;
  link.rel = 'noreferrer';
  link.textContent = place.textContent;
  place.replaceChildren(link);
}
