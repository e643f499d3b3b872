// A canvas of all devices. Arrow keys move from square to square, Enter opens the server; a live
// region says what is there.
import {
  type KeyboardEvent,
  type PointerEvent,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { t } from "../texts";
import { colour, onTheme } from "../theme";
import { HeatMapDrawing, layoutOf, paletteOf } from "./heat_map_drawing";

export const unknownValue = 255;
export const faultValue = 254;

interface HeatMapProps {
  label: string;
  starts: Uint32Array; // of each server the index of its first device; one more at the end
  values: Uint8Array; // 0 to 100, faultValue or unknownValue
  describe: (device: number, server: number) => string;
  onOpen: (server: number) => void;
  heightMax?: number;
}

interface Spot {
  device: number;
  x: number;
  y: number;
  size: number;
}

function paletteNow(): Uint32Array {
  const stops = [0, 1, 2, 3, 4].map((step) => colour(`--heat-${step}`));
  return paletteOf(stops, { [faultValue]: colour("--bad"), [unknownValue]: colour("--idle") });
}

export function HeatMap({
  label,
  starts,
  values,
  describe,
  onOpen,
  heightMax = 620,
}: HeatMapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawing = useRef<HeatMapDrawing>(undefined);
  const latest = useRef(values);
  latest.current = values;
  const [spot, setSpot] = useState<Spot>();
  const hint = useId();

  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    let width = 0;
    const make = (isForced: boolean) => {
      const ratio = devicePixelRatio || 1;
      const now = Math.round((element.parentElement?.clientWidth ?? 800) * ratio);
      if (now === width && !isForced) return;
      width = now;
      let devices = 1;
      for (let i = 0; i + 1 < starts.length; ++i)
        devices = Math.max(devices, (starts[i + 1] ?? 0) - (starts[i] ?? 0));
      const layout = layoutOf(starts.length - 1, devices, width, heightMax * ratio);
      element.width = layout.width;
      element.height = layout.height;
      element.style.height = `${layout.height / ratio}px`;
      const context = element.getContext("2d");
      if (!context) return;
      drawing.current = new HeatMapDrawing(context, layout, starts, paletteNow());
      drawing.current.update(latest.current);
    };
    make(true);
    const watcher = new ResizeObserver(() => make(false));
    if (element.parentElement) watcher.observe(element.parentElement);
    const stop = onTheme(() => make(true));
    return () => {
      watcher.disconnect();
      stop();
    };
  }, [starts, heightMax]);

  useLayoutEffect(() => {
    const start = performance.now();
    const changed = drawing.current?.update(values) ?? 0;
    // For measurements; the entry of before would stay.
    performance.clearMeasures("heat-map");
    if (changed > 0)
      performance.measure("heat-map", { start, end: performance.now(), detail: changed });
  }, [values]);

  const show = (device: number) => {
    const map = drawing.current;
    if (!map || device < 0) return setSpot(undefined);
    const ratio = devicePixelRatio || 1;
    const place = map.placeOf(device);
    setSpot({ device, x: place.x / ratio, y: place.y / ratio, size: map.layout.square / ratio });
  };
  const point = (event: PointerEvent) => {
    const box = canvas.current?.getBoundingClientRect();
    const ratio = devicePixelRatio || 1;
    if (box)
      show(
        drawing.current?.deviceAt(
          (event.clientX - box.left) * ratio,
          (event.clientY - box.top) * ratio,
        ) ?? -1,
      );
  };
  const press = (event: KeyboardEvent) => {
    const map = drawing.current;
    if (!map) return;
    const last = values.length - 1;
    const line = map.layout.blocks * map.layout.columns * map.layout.rows;
    const steps: Record<string, number> = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: line,
      ArrowUp: -line,
    };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      show(spot ? Math.max(0, Math.min(last, spot.device + step)) : 0);
    } else if (event.key === "Enter" && spot) onOpen(map.serverOf(spot.device));
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(last);
  };
  const words =
    spot && drawing.current ? describe(spot.device, drawing.current.serverOf(spot.device)) : "";
  return (
    <div className="canvas-box">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={label}
        aria-describedby={hint}
        onPointerMove={point}
        onPointerLeave={() => setSpot(undefined)}
        onClick={() => spot && drawing.current && onOpen(drawing.current.serverOf(spot.device))}
        onKeyDown={press}
        onBlur={() => setSpot(undefined)}
      />
      {spot && (
        <>
          <div
            className="tip"
            style={{
              left: Math.min(spot.x, (canvas.current?.clientWidth ?? 0) - 260),
              top: spot.y + spot.size + 6,
            }}
          >
            {words}
          </div>
          <div
            style={{
              position: "absolute",
              pointerEvents: "none",
              left: spot.x - 2,
              top: spot.y - 2,
              width: spot.size + 3,
              height: spot.size + 3,
              border: `2px solid ${colour("--text")}`,
              borderRadius: 3,
            }}
          />
        </>
      )}
      <p id={hint} className="hidden-text">
        {t("heat.keys")}
      </p>
      <p className="hidden-text" aria-live="polite">
        {words}
      </p>
    </div>
  );
}
