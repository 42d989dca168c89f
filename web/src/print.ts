// Paper: its width is not the window's, and no frame is drawn before it is laid out. Drawings for a
// width are then redrawn at once.

const drawers = new Set<() => void>();
let isOnPaper = false;

/** Whether the page is drawn for paper now. */
export const isPrinting = (): boolean => isOnPaper;

/** Calls back before the page is printed, when it has the paper's width, and after; returns how to stop that. */
export function onPrint(draw: () => void): () => void {
  drawers.add(draw);
  return () => drawers.delete(draw);
}

/** Listens for printing; called once. */
export function startPrinting(): void {
  for (const name of ['beforeprint', 'afterprint'])
    addEventListener(name, () => {
      isOnPaper = name === 'beforeprint';
      document.documentElement.toggleAttribute('data-printing', isOnPaper);
      for (const draw of drawers) draw();
      for (const table of document.querySelectorAll('table')) fitTable(table);
    });
}

/** Letters of a table are at least this share of others. */
const MIN_FIT = 0.7;

/** Makes a table as narrow as the paper: smaller letters, then figures in two lines, then broken words. */
function fitTable(table: HTMLTableElement): void {
  const { classList, style } = table;
  const share = (): number =>
    (table.parentElement?.clientWidth ?? 0) / table.offsetWidth;
  for (const name of ['', 'wrapped', 'broken']) {
    style.removeProperty('--fit');
    classList.remove('wrapped', 'broken');
    if (!isOnPaper || !(share() < 1)) return;
    if (name) classList.add(name);
    style.setProperty(
      '--fit',
      String(Math.min(1, Math.max(MIN_FIT, 0.98 * share()))),
    );
    if (share() >= 1) return;
  }
}
