// The address after `#`: /jobs/hello-1?tab=logs. The controller then serves one file for all views.
import { useSyncExternalStore } from "react";

export interface Place {
  path: string[]; // without empty parts
  query: URLSearchParams;
}

function parse(): Place {
  const hash = location.hash.replace(/^#\/?/, "");
  const [path = "", query = ""] = hash.split("?", 2);
  return {
    path: path.split("/").filter(Boolean).map(decodeURIComponent),
    query: new URLSearchParams(query),
  };
}

let current = parse();
const listeners = new Set<() => void>();
addEventListener("hashchange", () => {
  current = parse();
  for (const listener of listeners) listener();
});

export function usePlace(): Place {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    () => current,
  );
}

export function link(...path: (string | number)[]): string {
  return `#/${path.map((part) => encodeURIComponent(part)).join("/")}`;
}

export function go(target: string): void {
  location.hash = target;
}

// Changes keys of the address's query without a new entry in the history.
export function setQuery(changes: Record<string, string>): void {
  const query = new URLSearchParams(current.query);
  for (const [key, value] of Object.entries(changes))
    if (value) query.set(key, value);
    else query.delete(key);
  const words = query.toString();
  const hash = `#/${current.path.map(encodeURIComponent).join("/")}${words ? `?${words}` : ""}`;
  history.replaceState(null, "", hash);
  current = parse();
  for (const listener of listeners) listener();
}
