// Replicas x time: a line for each replica of the gang, a bar for each attempt. The table beside it
// has the same.
import { useEffect, useRef, useState } from "react";
import type { Attempt, Replica } from "../api/types";
import { duration, exactMoment, moment, number, t } from "../texts";
import { colour, onTheme } from "../theme";
import { ReplicaBadge } from "./badge";
import { DataTable } from "./data_table";
import { Icon } from "./icon";

interface Bar {
  attempt: Attempt;
  replica: Replica;
  row: number;
  start: number;
  end: number; // 0: it goes on
}

export function barsOf(attempts: Attempt[]): Bar[] {
  return attempts.flatMap((attempt) =>
    attempt.replicas.map((replica, row) => ({
      attempt,
      replica,
      row,
      start: replica.started_ms || attempt.started_ms,
      end: replica.ended_ms || attempt.ended_ms || 0,
    })),
  );
}

// Roles without a name have their number.
function nameOf(replica: Replica | undefined, row: number): string {
  const role = replica?.role ?? "";
  return /^\d*$/.test(role) ? `${t("replica")} ${row}` : `${role} ${row}`;
}

function toneOf({ replica }: Bar): string {
  if (replica.phase === "lost") return "--bad";
  if (replica.phase === "ended") return replica.exit_status || replica.signal ? "--bad" : "--good";
  return replica.phase === "running" ? "--accent" : "--wait";
}

const left = 92;
const axis = 22;
const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 604800];

interface Frame {
  rows: number;
  rowHeight: number;
  from: number;
  to: number;
  width: number;
}
function frameOf(bars: Bar[], width: number, now: number): Frame {
  const rows = bars.reduce((most, bar) => Math.max(most, bar.row + 1), 1);
  const rowHeight = Math.max(2, Math.min(22, Math.floor(480 / rows)));
  const from = Math.min(...bars.map((bar) => bar.start));
  const to = Math.max(from + 1000, ...bars.map((bar) => bar.end || now));
  return { rows, rowHeight, from, to, width };
}
const xOf = (frame: Frame, ms: number) =>
  left + ((ms - frame.from) / (frame.to - frame.from)) * (frame.width - left - 8);

function draw(canvas: HTMLCanvasElement, bars: Bar[], frame: Frame, now: number): void {
  const ratio = devicePixelRatio || 1;
  const height = frame.rows * frame.rowHeight + axis;
  canvas.width = Math.round(frame.width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  if (!context) return;
  context.scale(ratio, ratio);
  context.font = `11px ${getComputedStyle(canvas).fontFamily}`;
  context.textBaseline = "middle";
  drawAxis(context, frame, height);
  context.fillStyle = colour("--text-soft");
  const every = Math.ceil(16 / frame.rowHeight);
  for (let row = 0; row < frame.rows; row += every) {
    const replica = bars.find((bar) => bar.row === row)?.replica;
    context.fillText(nameOf(replica, row).slice(0, 14), 0, axis + (row + 0.5) * frame.rowHeight);
  }
  const tones = new Map<string, string>();
  for (const bar of bars) {
    const tone = toneOf(bar);
    if (!tones.has(tone)) tones.set(tone, colour(tone));
    context.fillStyle = tones.get(tone) ?? "";
    const x = xOf(frame, bar.start);
    const width = Math.max(2, xOf(frame, bar.end || now) - x - 1);
    const gap = frame.rowHeight > 8 ? 3 : frame.rowHeight > 3 ? 1 : 0;
    context.beginPath();
    context.roundRect(
      x,
      axis + bar.row * frame.rowHeight + gap,
      width,
      frame.rowHeight - 2 * gap,
      gap > 1 ? 3 : 0,
    );
    context.fill();
    if (width > 34 && frame.rowHeight > 13) {
      context.fillStyle = colour("--surface");
      context.fillText(
        `${bar.attempt.number}`,
        x + 6,
        axis + (bar.row + 0.5) * frame.rowHeight + 0.5,
      );
    }
  }
}

function drawAxis(context: CanvasRenderingContext2D, frame: Frame, height: number): void {
  const span = (frame.to - frame.from) / 1000;
  const wanted = Math.max(2, (frame.width - left) / 110);
  const step = (steps.find((each) => span / each <= wanted) ?? 604800) * 1000;
  context.strokeStyle = colour("--line");
  context.fillStyle = colour("--text-soft");
  for (let at = Math.ceil(frame.from / step) * step; at <= frame.to; at += step) {
    const x = Math.round(xOf(frame, at)) + 0.5;
    context.beginPath();
    context.moveTo(x, axis - 4);
    context.lineTo(x, height);
    context.stroke();
    if (x < frame.width - 60) context.fillText(moment(at), x + 4, 8);
  }
}

export function Timeline({ attempts, label }: { attempts: Attempt[]; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [isTable, setTable] = useState(false);
  const [tip, setTip] = useState<{ x: number; y: number; text: string }>();
  const bars = barsOf(attempts);
  const isLive = bars.some((bar) => !bar.end);
  const latest = useRef(bars);
  latest.current = bars;
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const paint = () => {
      const now = Date.now();
      draw(
        element,
        latest.current,
        frameOf(latest.current, element.parentElement?.clientWidth ?? 600, now),
        now,
      );
    };
    paint();
    const watcher = new ResizeObserver(paint);
    if (element.parentElement) watcher.observe(element.parentElement);
    const stop = onTheme(paint);
    const timer = isLive ? setInterval(paint, 1000) : undefined;
    return () => {
      watcher.disconnect();
      stop();
      clearInterval(timer);
    };
  }, [attempts, isTable, isLive]);
  const describe = (bar: Bar) =>
    `${nameOf(bar.replica, bar.row)}, ${bar.replica.node}: ${t(`replica.${bar.replica.phase}`)}, ${duration((bar.end || Date.now()) - bar.start)}`;
  const point = (event: React.PointerEvent<HTMLCanvasElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const now = Date.now();
    const frame = frameOf(bars, box.width, now);
    const row = Math.floor((y - axis) / frame.rowHeight);
    const hit = bars.find(
      (bar) => bar.row === row && xOf(frame, bar.start) <= x && x <= xOf(frame, bar.end || now) + 2,
    );
    setTip(
      hit
        ? {
            x: Math.min(x, box.width - 260),
            y: y + 14,
            text: `${describe(hit)} (${t("attempt")} ${hit.attempt.number})`,
          }
        : undefined,
    );
  };
  return (
    <figure>
      <div className="inline">
        <button
          type="button"
          className="bare small"
          aria-pressed={isTable}
          onClick={() => setTable(!isTable)}
        >
          <Icon name={isTable ? "chart" : "table"} /> {isTable ? t("as.chart") : t("as.table")}
          <span className="hidden-text">{label}</span>
        </button>
        <Legend />
      </div>
      {isTable ? (
        <DataTable
          label={label}
          rows={bars}
          id={(_, index) => index}
          columns={[
            { name: t("attempt"), isNumber: true, of: (bar) => number(bar.attempt.number) },
            { name: t("replica"), of: (bar) => nameOf(bar.replica, bar.row) },
            { name: t("node"), of: (bar) => bar.replica.node },
            {
              name: t("phase"),
              of: (bar) => (
                <ReplicaBadge
                  phase={bar.replica.phase}
                  status={bar.replica.exit_status}
                  signal={bar.replica.signal}
                />
              ),
            },
            { name: t("started"), of: (bar) => exactMoment(bar.start) },
            {
              name: t("took"),
              isNumber: true,
              of: (bar) => duration((bar.end || Date.now()) - bar.start),
            },
            {
              name: t("exit_status"),
              isNumber: true,
              of: (bar) =>
                bar.replica.signal
                  ? `${t("signal")} ${bar.replica.signal}`
                  : (bar.replica.exit_status ?? "–"),
            },
          ]}
        />
      ) : (
        <div className="canvas-box">
          <canvas
            ref={canvas}
            role="img"
            aria-label={`${label}. ${t("chart.table_behind")}`}
            onPointerMove={point}
            onPointerLeave={() => setTip(undefined)}
          />
          {tip && (
            <div className="tip" style={{ left: tip.x, top: tip.y }}>
              {tip.text}
            </div>
          )}
        </div>
      )}
    </figure>
  );
}

function Legend() {
  const entries = [
    ["var(--accent)", t("replica.running")],
    ["var(--good)", t("legend.ended_well")],
    ["var(--bad)", t("legend.ended_badly")],
    ["var(--wait)", t("replica.waiting")],
  ] as const;
  return (
    <span className="legend">
      {entries.map(([background, name]) => (
        <span key={name}>
          <i style={{ background }} />
          {name}
        </span>
      ))}
    </span>
  );
}
