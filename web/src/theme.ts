// Light, dark, or as the system has it; and the colours that canvases draw with.
export type Theme = "system" | "light" | "dark";

const listeners = new Set<() => void>();
const systemDark = matchMedia("(prefers-color-scheme: dark)");

export function chosenTheme(): Theme {
  const chosen = localStorage.getItem("regatta-theme");
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

export function isDark(): boolean {
  const theme = chosenTheme();
  return theme === "system" ? systemDark.matches : theme === "dark";
}

export function applyTheme(): void {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  for (const listener of listeners) listener();
}

export function setTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem("regatta-theme");
  else localStorage.setItem("regatta-theme", theme);
  applyTheme();
}

systemDark.addEventListener("change", applyTheme);

export function onTheme(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

// A colour of the style sheet, such as `--accent`.
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
