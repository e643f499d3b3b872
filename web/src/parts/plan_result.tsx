// The answer of the planner: figures first, then the candidates, then the whole answer.
import { number, percent, t } from "../texts";
import { Card } from "./card";
import { DataTable } from "./data_table";

type Value = Record<string, unknown>;

// Keys with plain values become facts; lists of objects become tables.
function tablesOf(result: Value): [string, Value[]][] {
  return Object.entries(result).filter((entry): entry is [string, Value[]] => {
    const rows = entry[1];
    return (
      Array.isArray(rows) && rows.length > 0 && typeof rows[0] === "object" && rows[0] !== null
    );
  });
}

function shown(key: string, value: unknown): string {
  if (typeof value === "number") {
    if (/(mfu|share|bubble)/.test(key) && Math.abs(value) <= 1) return percent(value);
    return number(value, Math.abs(value) < 10 ? 4 : 1);
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const isPlain = (value: unknown) => ["number", "string", "boolean"].includes(typeof value);

export function PlanResult({ result }: { result: Value }) {
  const plan = (
    typeof result.plan === "object" && result.plan !== null && !Array.isArray(result.plan)
      ? result.plan
      : result
  ) as Value;
  const facts = Object.entries(plan).filter(([, value]) => isPlain(value));
  return (
    <div className="stack">
      <Card title={t("plans.result")} query="POST /v1/plans">
        <div className="tiles">
          {facts.map(([key, value]) => (
            <div key={key}>
              <div className="quiet">{key.replaceAll("_", " ")}</div>
              <div style={{ fontSize: 17, fontWeight: 600 }}>{shown(key, value)}</div>
            </div>
          ))}
        </div>
      </Card>
      {[...tablesOf(plan), ...(plan === result ? [] : tablesOf(result))].map(([name, rows]) => (
        <Card key={name} title={name.replaceAll("_", " ")} query="POST /v1/plans" isFlush>
          <DataTable
            label={name}
            rows={rows}
            id={(_, index) => index}
            columns={Object.keys(rows[0] ?? {})
              .filter((key) => isPlain(rows[0]?.[key]))
              .slice(0, 12)
              .map((key) => ({
                name: key.replaceAll("_", " "),
                isNumber: typeof rows[0]?.[key] === "number",
                of: (row: Value) => shown(key, row[key]),
              }))}
          />
        </Card>
      ))}
      <Card title={t("plans.whole")} query="POST /v1/plans">
        <pre tabIndex={0} aria-label={t("plans.whole")}>
          {JSON.stringify(result, null, 2)}
        </pre>
      </Card>
    </div>
  );
}
