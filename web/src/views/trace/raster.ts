// Draws many small rectangles into memory: a canvas draws one picture faster
// than a hundred thousand rectangles.

/** Converts "#rrggbb" to a pixel of image data. */
export function toPixel(colour: string): number {
  const value = Number.parseInt(colour.slice(1), 16);
  return (
    (0xff000000 |
      ((value & 0xff) << 16) |
      (value & 0xff00) |
      ((value >> 16) & 0xff)) >>>
    0
  );
}

export class Raster {
  private readonly image: ImageData;
  private readonly pixels: Uint32Array;

  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
  }

  clear(colour: number): void {
    this.pixels.fill(colour);
  }

  /** Fills whole pixels of a rectangle, as far as it is inside. */
  fill(x0: number, x1: number, y0: number, y1: number, colour: number): void {
    const left = Math.max(0, Math.floor(x0));
    const right = Math.min(this.width, Math.ceil(x1));
    const bottom = Math.min(this.height, Math.round(y1));
    if (right <= left) return;
    for (let y = Math.max(0, Math.round(y0)); y < bottom; y += 1) {
      const line = y * this.width;
      this.pixels.fill(colour, line + left, line + right);
    }
  }

  /** Fills a rectangle with slanted stripes. */
  hatch(
    x0: number,
    x1: number,
    y0: number,
    y1: number,
    colour: number,
    period = 5,
  ): void {
    const left = Math.max(0, Math.floor(x0));
    const right = Math.min(this.width, Math.max(Math.ceil(x1), left + 1));
    const bottom = Math.min(this.height, Math.round(y1));
    for (let y = Math.max(0, Math.round(y0)); y < bottom; y += 1) {
      for (let x = left; x < right; x += 1) {
        if ((x + y) % period < 2) this.pixels[y * this.width + x] = colour;
      }
    }
  }

  /** A border of one pixel, within the rectangle. */
  frame(x0: number, x1: number, y0: number, y1: number, colour: number): void {
    this.fill(x0, x1, y0, y0 + 1, colour);
    this.fill(x0, x1, y1 - 1, y1, colour);
    if (x0 >= 0) this.fill(x0, Math.floor(x0) + 1, y0, y1, colour);
    if (x1 <= this.width) this.fill(Math.ceil(x1) - 1, x1, y0, y1, colour);
  }

  put(context: CanvasRenderingContext2D, x: number, y: number): void {
    context.putImageData(this.image, x, y);
  }
}
