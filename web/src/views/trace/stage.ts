// The canvas of rows: its size, when it is drawn, and the bar that makes it
// higher or lower.

import { h } from '../../dom';
import { theme } from '../../theme';
import { type Frame, AXIS_HEIGHT, rowCount, rowHeight } from './frame';
import { Painter } from './paint';
import { gutterOf } from './pointer';
import type { Scene } from './scene';
import { type Handle, type State, chosenColouring, findMarked } from './state';

/** The share of the browser window's height that rows have at first. */
const MAX_HEIGHT_SHARE = 0.7;
const MIN_HEIGHT = 140;
/** A key changes the height by this, pixels. */
const KEY_STEP = 40;

/** The canvas of rows: its size, and when it is drawn. */
export class Stage {
  /** Height of a row. */
  height = 18;
  /** The height of the visible part that the reader chose; null: a share of the window. */
  chosen: number | null = null;
  private frame = 0;
  private readonly painter = new Painter();
  private marked: { key: string; set: ReadonlySet<number> | null } = {
    key: '',
    set: null,
  };

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly scroller: HTMLElement,
    private readonly spacer: HTMLElement,
    private readonly scene: Scene,
    private readonly state: State,
    /** Called when visible rows begin or cease to distinguish threads by hue. */
    private readonly onHues: () => void,
  ) {}

  get hasHues(): boolean {
    return this.painter.rows.hasHues;
  }

  /** The height of the visible part, pixels. */
  get room(): number {
    return (
      this.chosen ??
      Math.max(MIN_HEIGHT, Math.round(innerHeight * MAX_HEIGHT_SHARE))
    );
  }

  layout(summary: string): void {
    const { canvas, scroller, spacer, scene, state } = this;
    const rows = rowCount(scene, state.rows);
    this.height = rowHeight(rows, this.room);
    const whole = AXIS_HEIGHT + rows * this.height + 2;
    const height = Math.min(whole, this.room);
    canvas.style.height = `${height}px`;
    scroller.style.height = `${height + 2}px`;
    spacer.style.height = `${whole - height}px`;
    canvas.setAttribute(
      'aria-label',
      `Timeline of ${state.rows === 'cpus' ? 'CPUs' : 'threads'}. ${summary}`,
    );
    this.draw();
  }

  draw(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  dispose(): void {
    cancelAnimationFrame(this.frame);
  }

  /** Draws at once. */
  paint(): void {
    const { canvas } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const context = canvas.getContext('2d');
    if (!context || width === 0 || height === 0) return;
    const began = performance.now();
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    const [wide, high] = [
      Math.round(width * ratio),
      Math.round(height * ratio),
    ];
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
    }
    const { hasHues } = this;
    this.painter.paint(context, this.buildFrame(width, height), ratio);
    if (hasHues !== this.hasHues) this.onHues();
    // Benchmarks of the page read from here how long a frame took.
    canvas.dataset['frameMs'] = (performance.now() - began).toFixed(2);
    canvas.dataset['frames'] = String(
      Number(canvas.dataset['frames'] ?? 0) + 1,
    );
  }

  private buildFrame(width: number, height: number): Frame {
    const { scene, state } = this;
    const key = `${state.thread} ${state.find}`;
    if (this.marked.key !== key)
      this.marked = { key, set: findMarked(scene, state) };
    return {
      scene,
      rows: state.rows,
      window: state.window,
      width,
      height,
      row: this.height,
      scrolled: this.scroller.scrollTop,
      gutter: gutterOf(width),
      cursor: state.cursor,
      selection: state.selection,
      colourBy: chosenColouring(state),
      marked: this.marked.set,
      thread:
        state.thread === null
          ? null
          : (scene.placeOf.get(state.thread) ?? null),
      theme: theme(),
    };
  }
}

/** A bar below the rows that makes them higher or lower. */
export function resizer(stage: Stage, handle: Handle): HTMLElement {
  const grip = h('div.resizer', {
    role: 'separator',
    tabIndex: 0,
    aria: {
      label: 'Height of the timeline',
      orientation: 'horizontal',
      valuemin: String(MIN_HEIGHT),
      valuenow: String(stage.room),
    },
  });
  const setHeight = (height: number): void => {
    stage.chosen = Math.max(MIN_HEIGHT, Math.round(height));
    grip.setAttribute('aria-valuenow', String(stage.chosen));
    handle.layout();
  };
  let held: { y: number; height: number } | null = null;
  grip.addEventListener('pointerdown', (event) => {
    grip.setPointerCapture(event.pointerId);
    held = { y: event.clientY, height: stage.room };
  });
  grip.addEventListener('pointermove', (event) => {
    if (held) setHeight(held.height + event.clientY - held.y);
  });
  for (const name of ['pointerup', 'pointercancel'] as const)
    grip.addEventListener(name, () => (held = null));
  grip.addEventListener('keydown', (event) => {
    const by = { ArrowUp: -KEY_STEP, ArrowDown: KEY_STEP }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    setHeight(stage.room + by);
  });
  return grip;
}
