// The user who is signed in, for the views that offer changes.
import { createContext, useContext } from "react";
import { mayActAs, type Role, type Session } from "./api/types";

export const SessionContext = createContext<Session>({ user: "", role: "viewer" });

export function useSession(): Session & { may: (least: Role) => boolean } {
  const session = useContext(SessionContext);
  return { ...session, may: (least) => mayActAs(session.role, least) };
}
