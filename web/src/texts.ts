// The words of the page, one JSON a language, and numbers, times and sizes as that language has them.
import { useSyncExternalStore } from "react";

export type Language = "en" | "zh";
export const languages: { id: Language; name: string }[] = [
  { id: "en", name: "English" },
  { id: "zh", name: "中文" },
];
type Texts = Record<string, string>;
const loaders: Record<Language, () => Promise<{ default: Texts }>> = {
  en: () => import("./texts/en.json"),
  zh: () => import("./texts/zh.json"),
};

let texts: Texts = {};
let language: Language = "en";
let version = 0;
const listeners = new Set<() => void>();

export function chosenLanguage(): Language {
  const chosen = localStorage.getItem("regatta-language");
  if (chosen === "en" || chosen === "zh") return chosen;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export async function loadLanguage(wanted: Language): Promise<void> {
  texts = (await loaders[wanted]()).default;
  language = wanted;
  document.documentElement.lang = wanted === "zh" ? "zh-CN" : "en";
  formats.clear();
  ++version;
  for (const listener of listeners) listener();
}

export async function setLanguage(wanted: Language): Promise<void> {
  localStorage.setItem("regatta-language", wanted);
  await loadLanguage(wanted);
}

export function currentLanguage(): Language {
  return language;
}

export function useTexts(): number {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    () => version,
  );
}

// The text of a key, with {name} replaced by the value of that name, and {name|one|many} by the word
// that fits it.
export function t(key: string, values?: Record<string, string | number>): string {
  const text = texts[key];
  if (text === undefined) return key;
  if (!values) return text;
  return text.replace(
    /\{(\w+)(?:\|([^|}]*)\|([^}]*))?\}/g,
    (all, name: string, one?: string, many?: string) => {
      const value = values[name];
      if (one !== undefined) return (value === 1 ? one : many) ?? "";
      return value === undefined ? all : typeof value === "number" ? number(value) : value;
    },
  );
}
export function has(key: string): boolean {
  return texts[key] !== undefined;
}

const formats = new Map<string, Intl.NumberFormat | Intl.DateTimeFormat>();
function locale(): string {
  return language === "zh" ? "zh-CN" : "en-GB";
}
function numberFormat(digits: number): Intl.NumberFormat {
  const key = `n${digits}`;
  let format = formats.get(key) as Intl.NumberFormat | undefined;
  if (!format) {
    format = new Intl.NumberFormat(locale(), { maximumFractionDigits: digits });
    formats.set(key, format);
  }
  return format;
}
function dateFormat(key: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  let format = formats.get(key) as Intl.DateTimeFormat | undefined;
  if (!format) {
    format = new Intl.DateTimeFormat(locale(), options);
    formats.set(key, format);
  }
  return format;
}

export function number(value: number, digits = 0): string {
  return numberFormat(digits).format(value);
}
export function percent(value: number): string {
  return `${number(value * 100, value < 0.1 && value > 0 ? 1 : 0)} %`;
}
export function mebibytes(value: number): string {
  if (value >= 1 << 20) return `${number(value / (1 << 20), 1)} TiB`;
  if (value >= 1024) return `${number(value / 1024, value < 10240 ? 1 : 0)} GiB`;
  return `${number(value)} MiB`;
}

// Today the time alone, else with the date.
export function moment(ms: number | undefined): string {
  if (!ms) return "–";
  const isToday = new Date(ms).toDateString() === new Date().toDateString();
  return isToday
    ? dateFormat("time", { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(ms)
    : dateFormat("day", {
        month: "short",
        day: "numeric",
        hour: "2-digit",
        minute: "2-digit",
      }).format(ms);
}
export function exactMoment(ms: number | undefined): string {
  if (!ms) return "–";
  return dateFormat("exact", { dateStyle: "medium", timeStyle: "medium" }).format(ms);
}

const unitNames: Record<Language, Record<string, string>> = {
  en: { ms: " ms", s: " s", m: " min", h: " h", d: " d" },
  zh: { ms: " 毫秒", s: " 秒", m: " 分", h: " 小时", d: " 天" },
};

// At most two units.
export function duration(ms: number): string {
  const names = unitNames[language];
  const say = (value: number, unit: string, digits = 0) => number(value, digits) + names[unit];
  const s = Math.max(0, ms / 1000);
  if (s < 1) return say(ms, "ms");
  if (s < 60) return say(s, "s", s < 10 ? 1 : 0);
  const m = Math.floor(s / 60);
  if (m < 60) return `${say(m, "m")} ${say(Math.floor(s % 60), "s")}`;
  const h = Math.floor(m / 60);
  if (h < 48) return `${say(h, "h")} ${say(m % 60, "m")}`;
  return `${say(Math.floor(h / 24), "d")} ${say(h % 24, "h")}`;
}
