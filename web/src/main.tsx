// Starts everything at once: the language, who is signed in, and the first replies, then the page.
import { createRoot } from "react-dom/client";
import "./style/base.css";
import "./style/shell.css";
import "./style/parts.css";
import { App } from "./app";
import { asProblem, request, type Problem } from "./api/client";
import { load } from "./api/query";
import type { Session } from "./api/types";
import { chosenLanguage, loadLanguage } from "./texts";
import { applyTheme } from "./theme";
import { firstView } from "./views";
import { overviewPaths } from "./views/overview";

applyTheme();

// The address that `regatta up` prints has a secret that works once; it leaves the address at once.
function takeOnce(): string | null {
  const words = new URLSearchParams(location.hash.replace(/^#\/?\??/, ""));
  const once = words.get("once") ?? new URLSearchParams(location.search).get("once");
  if (once) history.replaceState(null, "", location.pathname);
  return once;
}

async function signIn(): Promise<Session | Problem> {
  const once = takeOnce();
  try {
    if (once) return await request<Session>("/v1/login", { method: "POST", body: { once } });
    return await request<Session>("/v1/session");
  } catch (error) {
    const problem = asProblem(error);
    // A secret that was used before does no harm where this browser is signed in already.
    if (once && problem.status === 401)
      return request<Session>("/v1/session").catch((again) => asProblem(again));
    return problem;
  }
}

const isFirst = (!location.hash || location.hash === "#/") && !location.search;
const signing = signIn();
if (isFirst) for (const path of overviewPaths) void load(path);
void Promise.all([signing, loadLanguage(chosenLanguage()), firstView()]).then(([session]) => {
  const root = document.getElementById("root");
  if (root) createRoot(root).render(<App first={session} />);
});
