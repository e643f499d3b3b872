// Series that the ranks report, and what the plan predicted beside what was measured.
import { useQuery } from "../api/query";
import { number, percent, t } from "../texts";
import { Card, Loading, Trouble } from "./card";
import { Chart } from "./chart";
import { DataTable } from "./data_table";

interface Series {
  name: string;
  unit: string;
  steps: number[];
  times_ms: (number | null)[];
  values: (number | null)[];
}
interface JobMetricsReply {
  series: Series[];
  predicted: Record<string, number | string> | null;
}

const lastValues = 50;
function median(values: (number | null)[]): number {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? NaN;
}

export function JobMetrics({ path, isLive }: { path: string; isLive: boolean }) {
  const reply = useQuery<JobMetricsReply>(`${path}/metrics`, { every: isLive ? 2000 : undefined });
  const query = `GET ${path}/metrics`;
  if (!reply.data)
    return reply.problem ? (
      <Trouble problem={reply.problem} what={t("metrics.these")} />
    ) : (
      <Loading />
    );
  const { series, predicted } = reply.data;
  if (series.length === 0 && !predicted) return <p className="card empty">{t("metrics.none")}</p>;
  const names = new Set([...series.map((each) => each.name), ...Object.keys(predicted ?? {})]);
  const rows = [...names].map((name) => {
    const found = series.find((each) => each.name === name);
    const guess = predicted?.[name];
    return {
      name,
      unit: found?.unit ?? "",
      measured:
        found && found.values.length > 0 ? median(found.values.slice(-lastValues)) : undefined,
      predicted: typeof guess === "number" ? guess : undefined,
      words: typeof guess === "string" ? guess : "–",
    };
  });
  return (
    <div className="grid">
      {series.map((each) => {
        const guess = predicted?.[each.name];
        const lines = [{ name: each.name, unit: each.unit, values: each.values }];
        if (typeof guess === "number")
          lines.push({
            name: t("predicted"),
            unit: each.unit,
            values: each.values.map(() => guess),
          });
        return (
          <Card key={each.name} title={each.name} query={query} className="w6">
            <Chart
              label={each.name}
              x={each.steps}
              xName={t("step")}
              lines={lines.map((line, index) => ({ ...line, dash: index === 1 }))}
            />
          </Card>
        );
      })}
      <Card title={t("metrics.beside")} query={query} isFlush>
        <DataTable
          label={t("metrics.beside")}
          rows={rows}
          id={(row) => row.name}
          columns={[
            { name: t("metric"), of: (row) => (row.unit ? `${row.name} (${row.unit})` : row.name) },
            {
              name: t("predicted"),
              isNumber: true,
              of: (row) => (row.predicted === undefined ? row.words : number(row.predicted, 4)),
            },
            {
              name: t("metrics.measured"),
              isNumber: true,
              of: (row) => (row.measured === undefined ? "–" : number(row.measured, 4)),
            },
            {
              name: t("metrics.error"),
              isNumber: true,
              of: (row) =>
                row.predicted === undefined || row.measured === undefined || row.predicted === 0
                  ? "–"
                  : percent(row.measured / row.predicted - 1),
            },
          ]}
        />
      </Card>
    </div>
  );
}
