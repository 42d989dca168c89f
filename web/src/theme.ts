// Light and dark, and the colours of charts. The series colours are those of Okabe and Ito (2008,
// "Color Universal Design"), distinguishable with any of the common colour-vision deficiencies;
// meaning never depends on colour alone.

import { isPrinting } from './print';

export interface Theme {
  readonly isDark: boolean;
  readonly text: string;
  readonly muted: string;
  readonly line: string;
  readonly surface: string;
  readonly background: string;
  /** Colours of series, in order. */
  readonly series: readonly string[];
  /** Better, worse, undecided: blue, vermilion, grey. */
  readonly better: string;
  readonly worse: string;
  readonly neutral: string;
  /** A scale from little to much, for figures on a map (viridis' ends and middle). */
  readonly scale: readonly string[];
}

const SCALE = ['#440154', '#3b528b', '#21918c', '#5ec962', '#fde725'];

export const LIGHT: Theme = {
  isDark: false,
  text: '#1c2024',
  muted: '#596068',
  line: '#d5d9de',
  surface: '#f5f6f8',
  background: '#ffffff',
  series: [
    '#0072b2',
    '#d55e00',
    '#009e73',
    '#cc79a7',
    '#b07c00',
    '#2a8fc4',
    '#6b6b6b',
    '#8c6d00',
  ],
  better: '#0072b2',
  worse: '#c04f00',
  neutral: '#6b7178',
  scale: SCALE,
};

export const DARK: Theme = {
  isDark: true,
  text: '#e6e9ec',
  muted: '#a4acb5',
  line: '#3a4048',
  surface: '#20252b',
  background: '#15181c',
  series: [
    '#56b4e9',
    '#e69f00',
    '#2fbf95',
    '#e39ac4',
    '#f0e442',
    '#7cc4ee',
    '#b5b5b5',
    '#d9a04a',
  ],
  better: '#56b4e9',
  worse: '#f08a3c',
  neutral: '#a4acb5',
  scale: SCALE,
};

export type ThemeChoice = 'system' | 'light' | 'dark';

const listeners = new Set<(theme: Theme) => void>();
let choice: ThemeChoice = 'system';
const system = matchMedia('(prefers-color-scheme: dark)');
const print = matchMedia('print');

/** The theme now. Paper is light. */
export function theme(): Theme {
  return isDark() && !isPrinting() && !print.matches ? DARK : LIGHT;
}

const isDark = (): boolean =>
  choice === 'system' ? system.matches : choice === 'dark';

/** Calls `listener` whenever the theme changes, until the returned function is called. */
export function onTheme(listener: (theme: Theme) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The reader's choice; not kept anywhere. */
export function chooseTheme(next: ThemeChoice): void {
  choice = next;
  notify();
}

function notify(): void {
  const now = theme();
  // Dark is the style sheet's exception; it does not apply on paper.
  document.documentElement.dataset['theme'] = isDark() ? 'dark' : 'light';
  for (const listener of listeners) listener(now);
}

system.addEventListener('change', notify);
print.addEventListener('change', notify);
