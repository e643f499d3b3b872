// Drawn for this page, 16 x 16, in the colour of the text.
const paths = {
  overview: "M2 9h5V2H2zM9 14h5V7H9zM2 14h5v-3H2zM9 5h5V2H9z",
  jobs: "M2 4h8M2 8h12M2 12h6",
  devices:
    "M2 2h3v3H2zM6.5 2h3v3h-3zM11 2h3v3h-3zM2 6.5h3v3H2zM6.5 6.5h3v3h-3zM11 6.5h3v3h-3zM2 11h3v3H2zM6.5 11h3v3h-3zM11 11h3v3h-3z",
  nodes: "M2 3h12v4H2zM2 9h12v4H2zM4.5 5h.01M4.5 11h.01",
  fabric: "M8 2v4M3 10V8h10v2M8 6v2M2 10h3v3H2zM6.5 10h3v3h-3zM11 10h3v3h-3z",
  queues: "M2 3h12M2 6.5h9M2 10h6M2 13.5h3",
  sharing: "M8 2a6 6 0 1 0 6 6H8z",
  plans: "M2 13V3l4 2 4-2 4 2v10l-4-2-4 2zM6 5v10M10 3v10",
  alerts: "M8 2 14 13H2zM8 6v3.5M8 11.5v.01",
  audit: "M4 2h6l3 3v9H4zM6.5 7h4M6.5 10h4",
  users:
    "M6 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM1 14c0-3 2-4.5 5-4.5s5 1.5 5 4.5M11 2.5a3 3 0 0 1 0 5M12.5 10c1.7.6 2.5 2 2.5 4",
  tokens: "M5.5 10.5a3.5 3.5 0 1 1 3.2-4.9H15V8h-2v2h-2.5V8H8.7a3.5 3.5 0 0 1-3.2 2.5zM5 7h.01",
  submit: "M8 3v10M3 8h10",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM11 11l3 3",
  copy: "M5 5h9v9H5zM11 5V2H2v9h3",
  close: "M3 3l10 10M13 3 3 13",
  table: "M2 3h12v10H2zM2 7h12M7 3v10",
  chart: "M2 2v12h12M4 10l3-3 2 2 5-5",
  out: "M6 2H2v12h4M6 8h8M11 5l3 3-3 3",
} as const;
export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      className="icon"
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  );
}

export function Mark() {
  return (
    <svg viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" fill="#0b5d7a" />
      <path d="M7 20h4v5H7zM14 13h4v12h-4zM21 7h4v18h-4z" fill="#fff" />
    </svg>
  );
}
