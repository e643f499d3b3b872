// Secrets for programs and for servers that join. A new one is shown once.
import { useState } from "react";
import { request } from "../api/client";
import { useAction, useQuery } from "../api/query";
import type { List } from "../api/types";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { useSession } from "../session";
import { exactMoment, t } from "../texts";

interface Token {
  id: string;
  use: string;
  user: string;
  name: string;
  created_ms: number;
  expires_ms?: number;
  uses_left?: number;
}

export default function Tokens() {
  const reply = useQuery<List<Token>>("/v1/tokens");
  const action = useAction();
  const [isMaking, setMaking] = useState(false);
  const [secret, setSecret] = useState("");
  const [removed, setRemoved] = useState<Token>();
  if (!reply.data)
    return reply.problem ? (
      <Trouble problem={reply.problem} what={t("view.tokens")} />
    ) : (
      <Loading />
    );
  const remove = async (token: Token) => {
    if (
      !(await action.run(() =>
        request(`/v1/tokens/${encodeURIComponent(token.id)}`, { method: "DELETE" }),
      ))
    )
      return;
    setRemoved(undefined);
    await reply.reload();
  };
  return (
    <>
      <PageHead title={t("view.tokens")}>
        <div className="actions">
          <button
            type="button"
            className="main"
            onClick={() => {
              action.clear();
              setMaking(true);
            }}
          >
            {t("tokens.add")}
          </button>
        </div>
      </PageHead>
      {secret && (
        <div className="notice good" role="status" style={{ marginBottom: 14 }}>
          <p>{t("tokens.once")}</p>
          <p className="inline">
            <code style={{ overflowWrap: "anywhere" }}>{secret}</code>
            <button
              type="button"
              className="small"
              onClick={() => void navigator.clipboard?.writeText(secret)}
            >
              <Icon name="copy" /> {t("copy")}
            </button>
            <button type="button" className="small" onClick={() => setSecret("")}>
              {t("tokens.saved")}
            </button>
          </p>
        </div>
      )}
      <Card title={t("view.tokens")} query="GET /v1/tokens" isFlush>
        <DataTable
          label={t("view.tokens")}
          rows={reply.data.items}
          id={(token) => token.id}
          columns={[
            { name: t("name"), of: (token) => token.name || "–" },
            { name: t("tokens.use"), of: (token) => t(`tokens.use.${token.use}`) },
            { name: t("user"), of: (token) => token.user },
            { name: t("tokens.created"), of: (token) => exactMoment(token.created_ms) },
            {
              name: t("tokens.expires"),
              of: (token) => (token.expires_ms ? exactMoment(token.expires_ms) : t("tokens.never")),
            },
            { name: t("tokens.uses_left"), isNumber: true, of: (token) => token.uses_left ?? "–" },
            {
              name: t("actions"),
              of: (token) => (
                <button
                  type="button"
                  className="small danger"
                  onClick={() => {
                    action.clear();
                    setRemoved(token);
                  }}
                >
                  {t("remove")}
                  <span className="hidden-text">{token.name || token.id}</span>
                </button>
              ),
            },
          ]}
        />
      </Card>
      {isMaking && (
        <TokenForm
          action={action}
          onClose={() => setMaking(false)}
          onMade={(made) => {
            setMaking(false);
            setSecret(made);
            void reply.reload();
          }}
        />
      )}
      {removed && (
        <Dialog
          title={t("tokens.remove_title", { token: removed.name || removed.id })}
          submit={t("remove")}
          isDanger
          isBusy={action.isBusy}
          problem={action.problem}
          onClose={() => setRemoved(undefined)}
          onSubmit={() => void remove(removed)}
        >
          <p>{t("tokens.remove_words")}</p>
        </Dialog>
      )}
    </>
  );
}

const lifetimes = ["1h", "1d", "7d", "30d", "365d"];

interface FormProps {
  action: ReturnType<typeof useAction>;
  onClose: () => void;
  onMade: (secret: string) => void;
}
function TokenForm({ action, onClose, onMade }: FormProps) {
  const session = useSession();
  const [name, setName] = useState("");
  const [use, setUse] = useState("api");
  const [lifetime, setLifetime] = useState("30d");
  const [uses, setUses] = useState("1");
  const make = () =>
    action.run(async () => {
      const body = {
        name: name.trim(),
        use,
        lifetime,
        ...(use === "join" ? { uses: Number(uses) } : {}),
      };
      onMade((await request<{ secret: string }>("/v1/tokens", { method: "POST", body })).secret);
    });
  return (
    <Dialog
      title={t("tokens.add")}
      submit={t("tokens.make")}
      isBusy={action.isBusy}
      problem={action.problem}
      onClose={onClose}
      onSubmit={() => void make()}
    >
      <label className="field">
        <span>{t("name")}</span>
        <input required value={name} onChange={(event) => setName(event.target.value)} />
      </label>
      <label className="field">
        <span>{t("tokens.use")}</span>
        <select value={use} onChange={(event) => setUse(event.target.value)}>
          <option value="api">{t("tokens.use.api")}</option>
          {session.may("operator") && <option value="join">{t("tokens.use.join")}</option>}
        </select>
      </label>
      <label className="field">
        <span>{t("tokens.lifetime")}</span>
        <select value={lifetime} onChange={(event) => setLifetime(event.target.value)}>
          {lifetimes.map((each) => (
            <option key={each} value={each}>
              {t(`lifetime.${each}`)}
            </option>
          ))}
        </select>
      </label>
      {use === "join" && (
        <label className="field">
          <span>{t("tokens.uses")}</span>
          <input
            type="number"
            min={1}
            required
            value={uses}
            onChange={(event) => setUses(event.target.value)}
          />
        </label>
      )}
    </Dialog>
  );
}
