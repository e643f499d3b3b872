// The output of one rank, read as it grows. At most `kept` bytes stay; older lines are dropped, and
// that is said.
import { problemOf, type Problem, asProblem } from "../api/client";

const kept = 8 << 20;
const codes = /\x1b\[[0-9;?]*[ -/]*[@-~]/g; // colours and moves of terminals

export interface LogLine {
  number: number;
  text: string;
}

export class LogStream {
  lines: LogLine[] = [];
  dropped = 0;
  isOpen = false;
  problem: Problem | undefined;
  private bytes = 0;
  private count = 0;
  private rest = "";
  private abort = new AbortController();

  constructor(
    private readonly path: string,
    private readonly onChange: () => void,
  ) {}

  async read(): Promise<void> {
    this.isOpen = true;
    try {
      const response = await fetch(this.path, {
        signal: this.abort.signal,
        credentials: "same-origin",
      });
      if (!response.ok || !response.body) throw await problemOf(response);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        this.add(value);
        this.onChange();
      }
      if (this.rest) this.line(this.rest);
      this.rest = "";
    } catch (error) {
      if (this.abort.signal.aborted) return;
      this.problem = asProblem(error);
    }
    this.isOpen = false;
    this.onChange();
  }

  stop(): void {
    this.abort.abort();
  }

  private add(text: string): void {
    const parts = (this.rest + text).split("\n");
    this.rest = parts.pop() ?? "";
    for (const part of parts) this.line(part);
    let drop = 0;
    while (this.bytes > kept && drop < this.lines.length - 1)
      this.bytes -= (this.lines[drop++]?.text.length ?? 0) + 1;
    if (drop > 0) {
      this.lines.splice(0, drop);
      this.dropped += drop;
    }
  }

  private line(text: string): void {
    // A progress bar writes many states over each other; the last one is what a terminal shows.
    const clean = text.replace(/\r$/, "").replace(/^.*\r/, "").replace(codes, "");
    this.lines.push({ number: ++this.count, text: clean });
    this.bytes += clean.length + 1;
  }
}
