// Keeps a fault of one view from taking the page with it.
import { Component, type ReactNode } from "react";
import { t } from "../texts";

export class Guard extends Component<{ children: ReactNode }, { error: string }> {
  state = { error: "" };
  static getDerivedStateFromError(error: unknown) {
    return { error: String(error) };
  }
  render() {
    if (!this.state.error) return this.props.children;
    return (
      <div className="notice bad" role="alert">
        <p>{t("view.failed", { error: this.state.error })}</p>
        <button type="button" onClick={() => location.reload()}>
          {t("load_again")}
        </button>
      </div>
    );
  }
}
