// The views, each in a file of its own that is fetched when it is first shown.
import { type ComponentType, lazy, type LazyExoticComponent } from "react";
import type { IconName } from "./parts/icon";
import Overview from "./views/overview";
import type { Role } from "./api/types";

export interface ViewProps {
  rest: string[]; // of the address, after the view's own word
}
type Loader = () => Promise<{ default: ComponentType<ViewProps> }>;
export interface View {
  id: string;
  icon: IconName;
  group: "work" | "cluster" | "people";
  least: Role;
  isWhole?: boolean; // it scrolls within itself
  Component: LazyExoticComponent<ComponentType<ViewProps>>;
  load: Loader;
}

function view(
  id: string,
  icon: IconName,
  group: View["group"],
  load: Loader,
  more: Partial<View> = {},
): View {
  let once: ReturnType<Loader> | undefined;
  const loadOnce = () => (once ??= load());
  return { id, icon, group, least: "viewer", load: loadOnce, Component: lazy(loadOnce), ...more };
}

export const views: View[] = [
  view("overview", "overview", "work", () => Promise.resolve({ default: Overview })),
  view("jobs", "jobs", "work", () => import("./views/jobs"), { isWhole: true }),
  view("queues", "queues", "work", () => import("./views/queues")),
  view("plans", "plans", "work", () => import("./views/plans")),
  view("devices", "devices", "cluster", () => import("./views/devices")),
  view("nodes", "nodes", "cluster", () => import("./views/nodes")),
  view("fabric", "fabric", "cluster", () => import("./views/fabric")),
  view("sharing", "sharing", "cluster", () => import("./views/sharing")),
  view("alerts", "alerts", "cluster", () => import("./views/alerts")),
  view("audit", "audit", "people", () => import("./views/audit"), { least: "admin" }),
  view("users", "users", "people", () => import("./views/users"), { least: "admin" }),
  view("tokens", "tokens", "people", () => import("./views/tokens"), { least: "user" }),
];

// Reached from others, not from the list at the side.
export const innerViews: View[] = [
  view("submit", "submit", "work", () => import("./views/submit"), { least: "user" }),
];

const jobView = view("job", "jobs", "work", () => import("./views/job"));
const nodeView = view("node", "nodes", "cluster", () => import("./views/node"));

export function viewOf(path: string[]): View | undefined {
  const [word = "overview", object] = path;
  if (word === "jobs" && object) return jobView;
  if (word === "nodes" && object) return nodeView;
  return [...views, ...innerViews].find((each) => each.id === word);
}

export async function firstView(): Promise<void> {
  const path = location.hash.replace(/^#\/?/, "").split("?")[0]?.split("/").filter(Boolean) ?? [];
  await (viewOf(path) ?? views[0])?.load().catch(() => undefined);
}
