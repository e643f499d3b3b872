// The frame of the page: who is signed in, the list of views, the bar above, the view itself.
import { Suspense, useEffect, useRef, useState } from "react";
import { asProblem, onSignedOut, Problem, request } from "./api/client";
import { forgetAll } from "./api/query";
import { mayActAs, type Session } from "./api/types";
import { live } from "./live/stream";
import { Bar } from "./parts/bar";
import { Loading } from "./parts/card";
import { Guard } from "./parts/guard";
import { Icon, Mark } from "./parts/icon";
import { link, usePlace } from "./router";
import { SessionContext } from "./session";
import { SignIn } from "./sign_in";
import { t, useTexts } from "./texts";
import { type View, viewOf, views } from "./views";

export function App({ first }: { first: Session | Problem }) {
  useTexts();
  const [session, setSession] = useState<Session | undefined>(
    first instanceof Problem ? undefined : first,
  );
  const [problem, setProblem] = useState<Problem | undefined>(
    first instanceof Problem ? first : undefined,
  );
  useEffect(() => {
    onSignedOut(() => setSession(undefined));
  }, []);
  useEffect(() => {
    if (!session) return;
    live.onRefused = () =>
      void request("/v1/session").catch((refused) => {
        if (asProblem(refused).status === 401) setSession(undefined);
      });
    live.start();
    return () => live.stop();
  }, [session]);
  if (!session)
    return (
      <SignIn
        problem={problem}
        onSignedIn={(made) => {
          setProblem(undefined);
          setSession(made);
        }}
      />
    );
  const signOut = async () => {
    await request("/v1/logout", { method: "POST" }).catch(() => undefined);
    forgetAll();
    setProblem(undefined);
    setSession(undefined);
  };
  return (
    <SessionContext.Provider value={session}>
      <Shell session={session} onSignOut={() => void signOut()} />
    </SessionContext.Provider>
  );
}

function Shell({ session, onSignOut }: { session: Session; onSignOut: () => void }) {
  useTexts();
  const place = usePlace();
  const view = viewOf(place.path);
  const title = place.path[1] ?? (view ? t(`view.${view.id}`) : "");
  useEffect(() => {
    document.title = title ? `${title} - Regatta` : "Regatta";
  }, [title]);
  // Another view begins at its top, and there a screen reader goes on.
  const isFirst = useRef(true);
  useEffect(() => {
    const main = document.getElementById("view");
    if (main && !isFirst.current) {
      main.scrollTop = 0;
      main.focus();
    }
    isFirst.current = false;
  }, [view, place.path[1]]);
  const rest = place.path.slice(1);
  return (
    <div className="shell">
      <a
        className="button skip"
        href="#view"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("view")?.focus();
        }}
      >
        {t("skip")}
      </a>
      <Side session={session} active={place.path[0] ?? "overview"} />
      <div className="content">
        <Bar session={session} onSignOut={onSignOut} />
        <main id="view" tabIndex={-1} className={view?.isWhole ? "whole" : undefined}>
          <Guard key={place.path.join("/")}>
            <Suspense fallback={<Loading />}>
              {view ? <view.Component rest={rest} /> : <p className="notice">{t("no_view")}</p>}
            </Suspense>
          </Guard>
        </main>
      </div>
    </div>
  );
}

function Side({ session, active }: { session: Session; active: string }) {
  const groups: View["group"][] = ["work", "cluster", "people"];
  return (
    <nav className="side" aria-label={t("views")}>
      <a className="brand" href="#/" aria-label="Regatta">
        <Mark />
        <span>Regatta</span>
      </a>
      {groups.map((group) => {
        const shown = views.filter(
          (each) => each.group === group && mayActAs(session.role, each.least),
        );
        if (shown.length === 0) return null;
        return (
          <div key={group}>
            <h2>{t(`group.${group}`)}</h2>
            <ul>
              {shown.map((each) => (
                <li key={each.id}>
                  <a
                    href={each.id === "overview" ? "#/" : link(each.id)}
                    aria-label={t(`view.${each.id}`)}
                    aria-current={active === each.id ? "page" : undefined}
                    onPointerEnter={() => void each.load()}
                    onFocus={() => void each.load()}
                  >
                    <Icon name={each.icon} />
                    <span>{t(`view.${each.id}`)}</span>
                  </a>
                </li>
              ))}
            </ul>
          </div>
        );
      })}
    </nav>
  );
}
