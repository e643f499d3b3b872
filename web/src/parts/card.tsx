// A titled part of a view. Its button "API" names the query that its numbers come from.
import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import type { Problem } from "../api/client";
import { t } from "../texts";
import { Icon } from "./icon";

export function QueryButton({ query, title }: { query: string; title: string }) {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLSpanElement>(null);
  const id = useId();
  useEffect(() => {
    if (!isOpen) return;
    const close = (event: Event) => {
      if (
        event instanceof KeyboardEvent
          ? event.key === "Escape"
          : !box.current?.contains(event.target as Node)
      )
        setOpen(false);
    };
    addEventListener("pointerdown", close);
    addEventListener("keydown", close);
    return () => {
      removeEventListener("pointerdown", close);
      removeEventListener("keydown", close);
    };
  }, [isOpen]);
  const [method = "GET", path = ""] = query.split(" ", 2);
  const command = `curl --cacert ca.pem -H "Authorization: Bearer $TOKEN" \\\n  ${method === "GET" ? "" : `-X ${method} `}'${location.origin}${path}'`;
  return (
    <span className="anchor" ref={box}>
      <button
        type="button"
        className="bare small query-button"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        aria-label={t("api.of", { title })}
        title={query}
        onClick={() => setOpen(!isOpen)}
      >
        API
      </button>
      {isOpen && (
        <span className="popover" id={id} role="group" aria-label={t("api.of", { title })}>
          <span>{t("api.from")}</span>
          <pre>{query}</pre>
          <pre>{command}</pre>
          <span>
            <button
              type="button"
              className="small"
              onClick={() => void navigator.clipboard?.writeText(command)}
            >
              <Icon name="copy" /> {t("copy")}
            </button>
          </span>
        </span>
      )}
    </span>
  );
}

interface CardProps {
  title: ReactNode;
  name?: string; // for the button's label where the title is no text
  query?: string;
  actions?: ReactNode;
  className?: string;
  isFlush?: boolean;
  children: ReactNode;
}

export function Card({
  title,
  name,
  query,
  actions,
  className = "",
  isFlush,
  children,
}: CardProps) {
  return (
    <section className={`card ${className}`}>
      <header>
        <h2>{title}</h2>
        <div className="actions">
          {actions}
          {query && <QueryButton query={query} title={name ?? String(title)} />}
        </div>
      </header>
      <div className={isFlush ? "flush" : "body"}>{children}</div>
    </section>
  );
}

// One plain sentence in place of what did not come.
export function Trouble({ problem, what }: { problem: Problem; what?: string }) {
  if (problem.isMissing)
    return <p className="notice">{t("problem.missing", { what: what ?? t("problem.this") })}</p>;
  if (problem.status === 403)
    return <p className="notice warn">{t("problem.role", { detail: problem.message })}</p>;
  return (
    <p className="notice bad" role="alert">
      {problem.message}
      {problem.hint && !problem.message.includes(problem.hint) ? ` ${problem.hint}` : ""}
    </p>
  );
}

export function Loading() {
  return (
    <p className="empty" aria-busy="true">
      {t("loading")}
    </p>
  );
}

export function PageHead({
  title,
  children,
  crumb,
}: {
  title: ReactNode;
  crumb?: ReactNode;
  children?: ReactNode;
}) {
  return (
    <div className="head">
      {crumb && (
        <nav className="crumb" aria-label={t("crumb")}>
          {crumb} <span aria-hidden="true">/</span>
        </nav>
      )}
      <h1>{title}</h1>
      {children}
    </div>
  );
}
