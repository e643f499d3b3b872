// The bar above the views: search, whether the figures are live, theme, language, user.
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import type { Session } from "../api/types";
import { jobs, nodes } from "../live/collections";
import { live } from "../live/stream";
import { go, link } from "../router";
import { currentLanguage, type Language, languages, moment, setLanguage, t } from "../texts";
import { chosenTheme, setTheme, type Theme } from "../theme";
import { Icon } from "./icon";

const staleAfter = 5000;

function LiveSign() {
  const state = useSyncExternalStore(
    (listener) => live.onState(listener),
    () => live.state,
  );
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  const isStale = now - state.heardAt > staleAfter;
  return (
    <span className={isStale ? "live stale" : "live"} role="status" title="GET /v1/watch">
      {isStale ? t("stale_since", { time: moment(state.heardAt) }) : t("live")}
    </span>
  );
}

export function LanguageChoice() {
  return (
    <select
      aria-label={t("language")}
      value={currentLanguage()}
      onChange={(event) => void setLanguage(event.target.value as Language)}
    >
      {languages.map((each) => (
        <option key={each.id} value={each.id} lang={each.id}>
          {each.name}
        </option>
      ))}
    </select>
  );
}

function ThemeChoice() {
  const [theme, choose] = useState<Theme>(chosenTheme());
  return (
    <select
      aria-label={t("theme")}
      value={theme}
      onChange={(event) => {
        const wanted = event.target.value as Theme;
        choose(wanted);
        setTheme(wanted);
      }}
    >
      {(["system", "light", "dark"] as const).map((each) => (
        <option key={each} value={each}>
          {t(`theme.${each}`)}
        </option>
      ))}
    </select>
  );
}

// A name of a node or of a job that is known; else it is taken for a job.
function Find() {
  const [words, setWords] = useState("");
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (
        event.key !== "/" ||
        event.ctrlKey ||
        event.metaKey ||
        /INPUT|TEXTAREA|SELECT/.test(target.tagName)
      )
        return;
      event.preventDefault();
      input.current?.focus();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const wanted = words.trim().toLowerCase();
  const found: { name: string; target: string }[] = [];
  if (wanted) {
    for (const node of nodes.items.values())
      if (found.length < 6 && node.name.toLowerCase().includes(wanted))
        found.push({ name: node.name, target: link("nodes", node.name) });
    for (const job of jobs.items.values())
      if (found.length < 12 && job.handle.toLowerCase().includes(wanted))
        found.push({ name: job.handle, target: link("jobs", job.handle) });
  }
  return (
    <form
      className="find"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        if (!wanted) return;
        const exact = found.find((each) => each.name.toLowerCase() === wanted) ?? found[0];
        go(exact?.target ?? link("jobs", words.trim()));
        setWords("");
        input.current?.blur();
      }}
    >
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        list="found"
        aria-label={t("find")}
        placeholder={t("find")}
        value={words}
        onChange={(event) => setWords(event.target.value)}
      />
      <kbd aria-hidden="true">/</kbd>
      <datalist id="found">
        {found.map((each) => (
          <option key={each.target} value={each.name} />
        ))}
      </datalist>
    </form>
  );
}

export function Bar({ session, onSignOut }: { session: Session; onSignOut: () => void }) {
  return (
    <header className="bar">
      <Find />
      <span className="grow" />
      <LiveSign />
      <ThemeChoice />
      <LanguageChoice />
      <span className="quiet cut" title={`GET /v1/session: ${t(`role.${session.role}`)}`}>
        {session.user}
      </span>
      <button
        type="button"
        className="bare"
        onClick={onSignOut}
        aria-label={t("sign_out")}
        title={t("sign_out")}
      >
        <Icon name="out" />
      </button>
    </header>
  );
}
