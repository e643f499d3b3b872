// A line chart by uPlot with a table of the same numbers behind a button.
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { number, t } from "../texts";
import { colour, onTheme } from "../theme";
import { DataTable } from "./data_table";
import { Icon } from "./icon";

export interface Line {
  name: string;
  unit: string;
  values: (number | null)[];
  dash?: boolean;
}
interface ChartProps {
  label: string;
  x: number[];
  xName: string;
  isTime?: boolean;
  lines: Line[];
  height?: number;
}
const strokes = ["--accent", "--warn", "--wait", "--good", "--bad"];

function options(
  { label, xName, isTime, lines, height = 190 }: ChartProps,
  width: number,
): uPlot.Options {
  const axis = {
    stroke: colour("--text-soft"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
  };
  return {
    width,
    height,
    title: undefined,
    class: label ? "chart" : "",
    scales: { x: { time: isTime ?? false } },
    cursor: { y: false },
    series: [
      { label: xName },
      ...lines.map((line, index) => ({
        label: line.unit ? `${line.name} (${line.unit})` : line.name,
        stroke: colour(strokes[index % strokes.length] ?? "--accent"),
        width: 1.5,
        dash: line.dash ? [6, 4] : undefined,
        points: { show: line.values.length < 3 },
        value: (_: uPlot, value: number | null) => (value === null ? "–" : number(value, 4)),
      })),
    ],
    axes: [axis, { ...axis, size: 56 }],
  };
}

export function Chart(props: ChartProps) {
  const { label, x, xName, lines } = props;
  const [isTable, setTable] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const shape = lines.map((line) => line.name + line.unit).join("|") + label;
  useEffect(() => {
    const element = box.current;
    if (isTable || !element) return;
    const data = () =>
      [latest.current.x, ...latest.current.lines.map((line) => line.values)] as uPlot.AlignedData;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(
        options(latest.current, element.clientWidth || 600),
        data(),
        element,
      );
    };
    draw();
    const watcher = new ResizeObserver(() =>
      plot.current?.setSize({ width: element.clientWidth, height: latest.current.height ?? 190 }),
    );
    watcher.observe(element);
    const stop = onTheme(draw);
    return () => {
      stop();
      watcher.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [isTable, shape]);
  useEffect(() => {
    plot.current?.setData([x, ...lines.map((line) => line.values)] as uPlot.AlignedData);
  }, [x, lines]);
  return (
    <figure>
      <div className="inline">
        <h3 className="hidden-text">{label}</h3>
        <button
          type="button"
          className="bare small"
          aria-pressed={isTable}
          onClick={() => setTable(!isTable)}
        >
          <Icon name={isTable ? "chart" : "table"} /> {isTable ? t("as.chart") : t("as.table")}
          <span className="hidden-text">{label}</span>
        </button>
      </div>
      {isTable ? (
        <DataTable
          label={label}
          rows={x.map((_, index) => index)}
          id={(row) => row}
          columns={[
            { name: xName, isNumber: true, of: (row) => number(x[row] ?? 0) },
            ...lines.map((line) => ({
              name: line.unit ? `${line.name} (${line.unit})` : line.name,
              isNumber: true,
              of: (row: number) =>
                line.values[row] === null ? "–" : number(line.values[row] ?? 0, 5),
            })),
          ]}
        />
      ) : (
        <div ref={box} role="img" aria-label={`${label}. ${t("chart.table_behind")}`} />
      )}
    </figure>
  );
}
