// The pixels of a heat map of devices: each device a square, those of a server a block of up to four
// columns. Values are bytes; only squares whose value changed are written.

export interface HeatMapLayout {
  square: number; // side in device pixels, with its gap
  columns: number; // of squares in a block
  rows: number;
  gap: number; // between blocks
  blocks: number; // in a line
  width: number;
  height: number;
}

// Between blocks; devices alone stand closer.
function gapOf(devices: number, square: number): number {
  return devices === 1 ? 0 : square > 6 ? 3 : 2;
}

// The largest squares with which `servers` blocks of `devices` squares fit into width x height_max;
// squares of 3 pixels where none fit.
export function layoutOf(
  servers: number,
  devices: number,
  width: number,
  heightMax: number,
): HeatMapLayout {
  const columns = Math.max(1, devices > 4 ? Math.ceil(devices / Math.ceil(devices / 4)) : devices);
  const rows = Math.max(1, Math.ceil(devices / columns));
  for (let square = 28; ; --square) {
    const gap = gapOf(devices, square);
    const blocks = Math.max(1, Math.floor((width + gap) / (columns * square + gap)));
    const lines = Math.ceil(servers / blocks);
    const height = Math.max(1, lines * (rows * square + gap) - gap);
    if (height <= heightMax || square <= 3)
      return { square, columns, rows, gap, blocks, width, height };
  }
}

export class HeatMapDrawing {
  private pixels: Uint32Array;
  private image: ImageData;
  private drawn: Int16Array; // -1: not yet
  private corners: Uint32Array; // of each square its first pixel

  // `starts`: for each server the index of its first device; one more at the end.
  constructor(
    private readonly context: CanvasRenderingContext2D,
    readonly layout: HeatMapLayout,
    readonly starts: Uint32Array,
    private readonly palette: Uint32Array,
  ) {
    this.image = context.createImageData(layout.width, layout.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    const devices = starts[starts.length - 1] ?? 0;
    this.drawn = new Int16Array(devices).fill(-1);
    this.corners = new Uint32Array(devices);
    for (let server = 0; server + 1 < starts.length; ++server)
      for (let device = starts[server] ?? 0; device < (starts[server + 1] ?? 0); ++device) {
        const { x, y } = this.corner(server, device - (starts[server] ?? 0));
        this.corners[device] = y * layout.width + x;
      }
  }

  private corner(server: number, place: number): { x: number; y: number } {
    const { square, columns, rows, gap, blocks } = this.layout;
    return {
      x: (server % blocks) * (columns * square + gap) + (place % columns) * square,
      y: Math.floor(server / blocks) * (rows * square + gap) + Math.floor(place / columns) * square,
    };
  }

  // Draws the squares whose value is not the drawn one; the answer is their number.
  update(values: Uint8Array): number {
    const { square, width } = this.layout;
    const { pixels, drawn, corners, palette } = this;
    const side = square > 3 ? square - 1 : square;
    let changed = 0;
    let first = pixels.length;
    let last = -1;
    for (let device = 0; device < corners.length; ++device) {
      const value = values[device] as number;
      if (drawn[device] === value) continue;
      drawn[device] = value;
      ++changed;
      const pixel = palette[value] as number;
      const corner = corners[device] as number;
      const end = corner + side * width;
      for (let line = corner; line < end; line += width)
        for (let at = line; at < line + side; ++at) pixels[at] = pixel;
      if (corner < first) first = corner;
      if (end > last) last = end;
    }
    if (changed > 0) {
      const top = Math.floor(first / width);
      const bottom = Math.ceil(last / width);
      this.context.putImageData(this.image, 0, 0, 0, top, width, bottom - top);
    }
    return changed;
  }

  // The device below a point in device pixels, or -1.
  deviceAt(x: number, y: number): number {
    const { square, columns, rows, gap, blocks } = this.layout;
    const blockWidth = columns * square + gap;
    const blockHeight = rows * square + gap;
    const column = Math.floor(x / blockWidth);
    const server = Math.floor(y / blockHeight) * blocks + column;
    const inX = Math.floor((x - column * blockWidth) / square);
    const inY = Math.floor((y % blockHeight) / square);
    if (x < 0 || y < 0 || column >= blocks || inX >= columns || inY >= rows) return -1;
    const first = this.starts[server];
    const end = this.starts[server + 1];
    if (first === undefined || end === undefined) return -1;
    const device = first + inY * columns + inX;
    return device < end ? device : -1;
  }

  placeOf(device: number): { x: number; y: number; server: number } {
    const server = this.serverOf(device);
    return { ...this.corner(server, device - (this.starts[server] ?? 0)), server };
  }

  serverOf(device: number): number {
    let low = 0;
    let high = this.starts.length - 2;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.starts[middle] ?? 0) <= device) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

// 256 colours: 0 to 100 a ramp through `stops`; the others as `special` says, else the first stop.
export function paletteOf(stops: string[], special: Record<number, string>): Uint32Array {
  const palette = new Uint32Array(256);
  const parsed = stops.map(parseColour);
  for (let value = 0; value < 256; ++value) {
    const given = special[value];
    if (given) {
      palette[value] = pack(parseColour(given));
      continue;
    }
    const at = (Math.min(100, value) / 100) * (parsed.length - 1);
    const low = parsed[Math.floor(at)] ?? [0, 0, 0];
    const high = parsed[Math.min(parsed.length - 1, Math.floor(at) + 1)] ?? low;
    const part = at - Math.floor(at);
    palette[value] = pack(low.map((c, i) => Math.round(c + ((high[i] ?? c) - c) * part)));
  }
  return palette;
}

function parseColour(text: string): number[] {
  const hex = text.replace("#", "");
  return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16) || 0);
}
function pack(rgb: number[]): number {
  return ((255 << 24) | ((rgb[2] ?? 0) << 16) | ((rgb[1] ?? 0) << 8) | (rgb[0] ?? 0)) >>> 0;
}
