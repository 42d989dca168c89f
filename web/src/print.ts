// Printing. Paper has another width than the window, and no animation frame comes before it is laid
// out, so drawings are redrawn synchronously.

const drawers = new Set<() => void>();
let isOnPaper = false;

/** Whether the page is drawn for paper now. */
export const isPrinting = (): boolean => isOnPaper;

/** Calls back before the page is printed, when it has the paper's width, and afterwards; returns a
 * function that stops this. */
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

/** Minimum font size of a table, relative to other text. */
const MIN_FIT = 0.7;

/** Makes a table as narrow as the paper: by smaller letters, then figures in two lines, then broken
 * words. */
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
