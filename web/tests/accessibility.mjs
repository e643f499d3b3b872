// The faults that axe-core finds on the page that is shown, a line each.
import { readFile } from "node:fs/promises";
import path from "node:path";
import { here } from "./browser.mjs";

const source = await readFile(path.join(here, "../node_modules/axe-core/axe.min.js"), "utf8");

export async function faultsOf(page, rules) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(source);
  return page.evaluate(async (only) => {
    const options = only ? { runOnly: { type: "rule", values: only } } : {};
    const found = await window.axe.run(document, { ...options, resultTypes: ["violations"] });
    return found.violations.flatMap((violation) =>
      violation.nodes.map(
        (node) => `${violation.id}: ${node.html.slice(0, 160)}: ${node.failureSummary ?? ""}`,
      ),
    );
  }, rules);
}
