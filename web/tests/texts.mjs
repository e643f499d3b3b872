// Keys of texts that the source uses and a language lacks, or whose places differ.
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

function sources(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const name = path.join(folder, entry.name);
    if (entry.isDirectory()) return sources(name);
    return /\.tsx?$/.test(name) ? [readFileSync(name, "utf8")] : [];
  });
}

export function missingTexts(web) {
  const [en, zh] = ["en", "zh"].map((language) =>
    JSON.parse(readFileSync(path.join(web, `src/texts/${language}.json`), "utf8")),
  );
  const faults = [];
  const places = (text) =>
    [...new Set([...text.matchAll(/\{(\w+)/g)].map((match) => match[1]))].sort().join();
  for (const key of new Set([...Object.keys(en), ...Object.keys(zh)]))
    if (en[key] === undefined || zh[key] === undefined) faults.push(`${key}: in one language only`);
    else if (places(en[key]) !== places(zh[key])) faults.push(`${key}: other places`);
  for (const text of sources(path.join(web, "src"))) {
    for (const [, key] of text.matchAll(/\bt\(\s*"([^"]+)"/g))
      if (en[key] === undefined) faults.push(`${key}: missing`);
    for (const [, start] of text.matchAll(/\bt\(\s*`([\w.]+\.)\$\{/g))
      if (!Object.keys(en).some((key) => key.startsWith(start))) faults.push(`${start}*: missing`);
  }
  return faults;
}
