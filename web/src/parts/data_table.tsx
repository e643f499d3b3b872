// A plain table; columns say how a row shows. Long ones show the first rows and a button for more.
import { type ReactNode, useState } from "react";
import { number, t } from "../texts";

export interface Column<T> {
  name: string;
  isNumber?: boolean;
  isWide?: boolean;
  of: (row: T) => ReactNode;
}

interface DataTableProps<T> {
  label: string;
  columns: Column<T>[];
  rows: T[];
  id: (row: T, index: number) => string | number;
  empty?: string;
}

const step = 200;

export function DataTable<T>({ label, columns, rows, id, empty }: DataTableProps<T>) {
  const [shown, setShown] = useState(step);
  if (rows.length === 0) return <p className="empty">{empty ?? t("nothing")}</p>;
  return (
    <div className="scroll" role="region" aria-label={label} tabIndex={0}>
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" className={column.isNumber ? "number" : undefined}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, shown).map((row, index) => (
            <tr key={id(row, index)}>
              {columns.map((column) => (
                <td
                  key={column.name}
                  className={column.isNumber ? "number" : column.isWide ? "wide" : undefined}
                >
                  {column.of(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > shown && (
        <p className="empty">
          <button type="button" onClick={() => setShown(shown + step * 5)}>
            {t("more", { count: number(rows.length - shown) })}
          </button>
        </p>
      )}
    </div>
  );
}
