// One event stream a browser, whatever the number of tabs: the tab that holds the lock reads it and
// hands the changes to the others.

export type LiveKind = "job" | "node" | "queues";
export const liveKinds: LiveKind[] = ["job", "node", "queues"];
export interface LiveState {
  isConnected: boolean;
  heardAt: number; // ms since 1970
}
type Listener = (kind: LiveKind, object: unknown, revision: string) => void;
type Message =
  | { say: "changes"; changes: [LiveKind, unknown, string][] }
  | { say: "state"; isConnected: boolean; isHeard: boolean }
  | { say: "list_again" }
  | { say: "hello" };

const pauseMin = 500;
const pauseMax = 8000;

class LiveStream {
  private channel = new BroadcastChannel("regatta-live");
  private listeners = new Set<Listener>();
  private stateListeners = new Set<() => void>();
  private againListeners = new Set<() => void>();
  private source: EventSource | null = null;
  private isStarted = false;
  private pause = pauseMin;
  private batch: [LiveKind, unknown, string][] = [];
  private release: (() => void) | null = null;
  isLeader = false;
  // The controller refused the stream: the session may be over.
  onRefused: () => void = () => {};
  state: LiveState = { isConnected: true, heardAt: Date.now() };

  start(): void {
    if (this.isStarted) return;
    this.isStarted = true;
    this.channel.onmessage = (event) => this.receive(event.data as Message);
    // The lock is kept until the tab is closed; then the next tab gets it.
    void navigator.locks.request(
      "regatta-stream",
      () =>
        new Promise<void>((resolve) => {
          this.release = resolve;
          this.isLeader = true;
          this.open();
        }),
    );
    this.tell({ say: "hello" });
  }

  stop(): void {
    this.isStarted = false;
    this.source?.close();
    this.source = null;
    this.isLeader = false;
    this.release?.();
    this.release = null;
  }

  on(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }
  onState(listener: () => void): () => void {
    this.stateListeners.add(listener);
    return () => void this.stateListeners.delete(listener);
  }
  // Changes were missed: everything that is shown is to be listed anew.
  onListAgain(listener: () => void): () => void {
    this.againListeners.add(listener);
    return () => void this.againListeners.delete(listener);
  }

  private open(): void {
    if (!this.isStarted) return;
    const source = new EventSource(`/v1/watch?kinds=${liveKinds.join(",")}`);
    let wasOpen = false;
    this.source = source;
    source.onopen = () => {
      wasOpen = true;
      this.pause = pauseMin;
      this.heard(true);
    };
    source.onerror = () => {
      this.heard(false);
      // With CONNECTING the browser resumes by itself from the last id.
      if (source.readyState !== EventSource.CLOSED) return;
      source.close();
      if (!this.isStarted) return;
      if (!wasOpen) this.onRefused();
      setTimeout(
        () => {
          this.open();
          this.source?.addEventListener("open", () => this.listAgain(), { once: true });
        },
        wasOpen ? pauseMin : this.pause,
      );
      this.pause = Math.min(this.pause * 2, pauseMax);
    };
    source.addEventListener("alive", () => this.heard(true));
    for (const kind of liveKinds)
      source.addEventListener(kind, (event) => {
        const message = event as MessageEvent<string>;
        if (this.batch.length === 0) queueMicrotask(() => setTimeout(() => this.deliver(), 0));
        this.batch.push([kind, JSON.parse(message.data), message.lastEventId]);
      });
  }

  private deliver(): void {
    const changes = this.batch;
    this.batch = [];
    this.heard(true);
    this.tell({ say: "changes", changes });
    this.apply(changes);
  }

  private apply(changes: [LiveKind, unknown, string][]): void {
    for (const [kind, object, revision] of changes)
      for (const listener of this.listeners) listener(kind, object, revision);
  }

  private listAgain(): void {
    this.tell({ say: "list_again" });
    for (const listener of this.againListeners) listener();
  }

  private heard(isConnected: boolean): void {
    this.setState(isConnected, isConnected);
    this.tell({ say: "state", isConnected, isHeard: isConnected });
  }

  private setState(isConnected: boolean, isHeard: boolean): void {
    const heardAt = isHeard ? Date.now() : this.state.heardAt;
    this.state = { isConnected, heardAt };
    for (const listener of this.stateListeners) listener();
  }

  private tell(message: Message): void {
    this.channel.postMessage(message);
  }

  private receive(message: Message): void {
    if (message.say === "changes") this.apply(message.changes);
    else if (message.say === "state") this.setState(message.isConnected, message.isHeard);
    else if (message.say === "list_again") for (const listener of this.againListeners) listener();
    else if (this.isLeader) this.heard(this.state.isConnected);
  }
}

export const live = new LiveStream();
