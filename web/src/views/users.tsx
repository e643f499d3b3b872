// The users of the cluster and their roles.
import { useState } from "react";
import { request } from "../api/client";
import { useAction, useQuery } from "../api/query";
import { type List, type Role, roles } from "../api/types";
import { Badge } from "../parts/badge";
import { Card, Loading, PageHead, Trouble } from "../parts/card";
import { DataTable } from "../parts/data_table";
import { Dialog } from "../parts/dialog";
import { useSession } from "../session";
import { t } from "../texts";

interface User {
  name: string;
  rev: string;
  role: Role;
  disabled: boolean;
  password: boolean;
}

export default function Users() {
  const session = useSession();
  const reply = useQuery<List<User>>("/v1/users");
  const action = useAction();
  const [edited, setEdited] = useState<Partial<User>>();
  const [removed, setRemoved] = useState<User>();
  const put = (user: string, body: Record<string, unknown>) => () =>
    request(`/v1/users/${encodeURIComponent(user)}`, { method: "PUT", body });
  const run = async (work: () => Promise<unknown>) => {
    if (!(await action.run(work))) return;
    setEdited(undefined);
    setRemoved(undefined);
    await reply.reload();
  };
  if (!reply.data)
    return reply.problem ? <Trouble problem={reply.problem} what={t("view.users")} /> : <Loading />;
  return (
    <>
      <PageHead title={t("view.users")}>
        <div className="actions">
          <button
            type="button"
            className="main"
            onClick={() => {
              action.clear();
              setEdited({ role: "user" });
            }}
          >
            {t("users.add")}
          </button>
        </div>
      </PageHead>
      {action.problem && !edited && !removed && <Trouble problem={action.problem} />}
      <Card title={t("view.users")} query="GET /v1/users" isFlush>
        <DataTable
          label={t("view.users")}
          rows={reply.data.items}
          id={(user) => user.name}
          columns={[
            { name: t("name"), of: (user) => user.name },
            { name: t("role"), of: (user) => t(`role.${user.role}`) },
            {
              name: t("state"),
              of: (user) => (
                <Badge tone={user.disabled ? "warn" : "good"}>
                  {t(user.disabled ? "users.disabled" : "users.enabled")}
                </Badge>
              ),
            },
            {
              name: t("password"),
              of: (user) => t(user.password ? "users.has_password" : "users.no_password"),
            },
            {
              name: t("actions"),
              of: (user) => (
                <span className="inline">
                  <button
                    type="button"
                    className="small"
                    onClick={() => {
                      action.clear();
                      setEdited(user);
                    }}
                  >
                    {t("change")}
                    <span className="hidden-text">{user.name}</span>
                  </button>
                  {user.name !== session.user && (
                    <>
                      <button
                        type="button"
                        className="small"
                        onClick={() =>
                          void run(put(user.name, { role: user.role, disabled: !user.disabled }))
                        }
                      >
                        {t(user.disabled ? "users.enable" : "users.disable")}
                        <span className="hidden-text">{user.name}</span>
                      </button>
                      <button
                        type="button"
                        className="small danger"
                        onClick={() => {
                          action.clear();
                          setRemoved(user);
                        }}
                      >
                        {t("remove")}
                        <span className="hidden-text">{user.name}</span>
                      </button>
                    </>
                  )}
                </span>
              ),
            },
          ]}
        />
      </Card>
      {edited && (
        <UserForm
          user={edited}
          action={action}
          onClose={() => setEdited(undefined)}
          onSave={(name, body) => void run(put(name, body))}
        />
      )}
      {removed && (
        <Dialog
          title={t("users.remove_title", { user: removed.name })}
          submit={t("remove")}
          isDanger
          isBusy={action.isBusy}
          problem={action.problem}
          onClose={() => setRemoved(undefined)}
          onSubmit={() =>
            void run(() =>
              request(`/v1/users/${encodeURIComponent(removed.name)}`, { method: "DELETE" }),
            )
          }
        >
          <p>{t("users.remove_words")}</p>
        </Dialog>
      )}
    </>
  );
}

interface FormProps {
  user: Partial<User>;
  action: ReturnType<typeof useAction>;
  onClose: () => void;
  onSave: (name: string, body: Record<string, unknown>) => void;
}
function UserForm({ user, action, onClose, onSave }: FormProps) {
  const [name, setName] = useState(user.name ?? "");
  const [role, setRole] = useState<Role>(user.role ?? "user");
  const [password, setPassword] = useState("");
  return (
    <Dialog
      title={user.name ? t("users.change_title", { user: user.name }) : t("users.add")}
      submit={t("save")}
      isBusy={action.isBusy}
      problem={action.problem}
      onClose={onClose}
      onSubmit={() =>
        onSave(name.trim(), {
          role,
          disabled: user.disabled ?? false,
          ...(password ? { password } : {}),
        })
      }
    >
      <label className="field">
        <span>{t("name")}</span>
        <input
          required
          value={name}
          disabled={!!user.name}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
      <label className="field">
        <span>{t("role")}</span>
        <select value={role} onChange={(event) => setRole(event.target.value as Role)}>
          {roles.map((each) => (
            <option key={each} value={each}>
              {t(`role.${each}`)}
            </option>
          ))}
        </select>
      </label>
      <label className="field">
        <span>{t("users.new_password")}</span>
        <input
          type="password"
          autoComplete="new-password"
          value={password}
          onChange={(event) => setPassword(event.target.value)}
        />
      </label>
    </Dialog>
  );
}
