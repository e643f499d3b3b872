// How much of a whole is used, with a mark where the guarantee ends.
export function Meter({
  value,
  of,
  mark,
  label,
}: {
  value: number;
  of: number;
  mark?: number;
  label: string;
}) {
  const share = of > 0 ? Math.min(1, value / of) : 0;
  return (
    <div className="meter" role="img" aria-label={label} title={label}>
      <i
        className={mark !== undefined && value > mark ? "over" : ""}
        style={{ width: `${share * 100}%` }}
      />
      {mark !== undefined && of > 0 && mark < of && <b style={{ left: `${(mark / of) * 100}%` }} />}
    </div>
  );
}
