// What the view of a difference reads of `pinwise.diff/1`.

export interface DiffSide {
  id?: string;
  schema?: string;
  time?: string;
  host?: string;
  title?: string;
  machine?: string | null;
}

export interface MachineChange {
  what: string;
  a?: string | null;
  b?: string | null;
}

export interface FigureChange {
  name: string;
  /** The baseline that a and b are ratios to; absent of a figure by itself. */
  over?: string | null;
  unit?: string;
  a?: number | null;
  a_low?: number | null;
  a_high?: number | null;
  b?: number | null;
  b_low?: number | null;
  b_high?: number | null;
  /** b over a, with its interval. */
  ratio?: number | null;
  low?: number | null;
  high?: number | null;
  verdict?: 'lower' | 'higher' | 'same' | 'cannot_tell';
  sentence?: string;
}

export interface DiffRecord {
  schema: string;
  a?: DiffSide;
  b?: DiffSide;
  machine_changes?: MachineChange[];
  figures?: FigureChange[];
  sentence?: string;
  caveats?: string[];
}
