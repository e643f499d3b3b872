// The form that stands where nobody is signed in.
import { useEffect, useState } from "react";
import { type Problem, request } from "./api/client";
import { useAction } from "./api/query";
import type { Session } from "./api/types";
import { LanguageChoice } from "./parts/bar";
import { Trouble } from "./parts/card";
import { Mark } from "./parts/icon";
import { t } from "./texts";

interface SignInProps {
  problem: Problem | undefined;
  onSignedIn: (session: Session) => void;
}

// Whether the controller knows another place that says who somebody is: it would lead there.
function useOidc(): boolean {
  const [has, setHas] = useState(false);
  useEffect(() => {
    fetch("/v1/login/oidc", { method: "HEAD", redirect: "manual" })
      .then((response) => setHas(response.type === "opaqueredirect"))
      .catch(() => undefined);
  }, []);
  return has;
}

export function SignIn({ problem, onSignedIn }: SignInProps) {
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const action = useAction();
  const hasOidc = useOidc();
  const submit = () =>
    action.run(async () =>
      onSignedIn(await request<Session>("/v1/login", { method: "POST", body: { user, password } })),
    );
  const shown = action.problem ?? (problem && problem.status !== 401 ? problem : undefined);
  return (
    <main className="sign-in">
      <form
        className="card"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <h1 className="brand">
          <Mark />
          Regatta
        </h1>
        <label className="field">
          <span>{t("user")}</span>
          <input
            name="user"
            autoComplete="username"
            autoFocus
            required
            value={user}
            onChange={(event) => setUser(event.target.value)}
          />
        </label>
        <label className="field">
          <span>{t("password")}</span>
          <input
            name="password"
            type="password"
            autoComplete="current-password"
            required
            value={password}
            onChange={(event) => setPassword(event.target.value)}
          />
        </label>
        <button type="submit" className="main" disabled={action.isBusy}>
          {t("sign_in")}
        </button>
        {hasOidc && (
          <a className="button" href="/v1/login/oidc">
            {t("sign_in.oidc")}
          </a>
        )}
        {shown && <Trouble problem={shown} what={t("sign_in")} />}
        <p className="quiet">{t("sign_in.once")}</p>
        <LanguageChoice />
      </form>
    </main>
  );
}
