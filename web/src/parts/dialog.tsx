// A question before a change that cannot be undone, or a small form.
import { type ReactNode, useEffect, useRef } from "react";
import type { Problem } from "../api/client";
import { t } from "../texts";
import { Trouble } from "./card";

interface DialogProps {
  title: string;
  submit: string;
  isDanger?: boolean;
  isBusy?: boolean;
  problem?: Problem;
  onSubmit: () => void;
  onClose: () => void;
  children?: ReactNode;
}

export function Dialog({
  title,
  submit,
  isDanger,
  isBusy,
  problem,
  onSubmit,
  onClose,
  children,
}: DialogProps) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = box.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog ref={box} aria-label={title} onCancel={onClose} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        <h2>{title}</h2>
        {children}
        {problem && <Trouble problem={problem} />}
        <div className="actions">
          <button type="button" onClick={onClose}>
            {t("close")}
          </button>
          <button type="submit" className={isDanger ? "danger main" : "main"} disabled={isBusy}>
            {submit}
          </button>
        </div>
      </form>
    </dialog>
  );
}
