// Requests to the controller: JSON in and out, and problems as values that can be shown.

export class Problem extends Error {
  readonly status: number; // 0: no answer
  readonly reason: string;
  readonly hint: string;
  constructor(status: number, reason: string, detail: string, hint = "") {
    super(detail);
    this.status = status;
    this.reason = reason;
    this.hint = hint;
  }
  // The controller has no such route, or the part behind it is not there.
  get isMissing(): boolean {
    return this.status === 501 || (this.status === 404 && this.message.includes("no such path"));
  }
}

export interface RequestOptions {
  method?: string;
  body?: unknown;
  ifMatch?: string;
  once?: string; // Idempotency-Key
  signal?: AbortSignal;
}

export async function problemOf(response: Response): Promise<Problem> {
  const words = await response.json().catch(() => ({}));
  return new Problem(
    response.status,
    words.reason ?? "Unknown",
    words.detail ?? `${response.url}: HTTP ${response.status}`,
    words.hint ?? "",
  );
}

let whenSignedOut: () => void = () => {};
export function onSignedOut(handler: () => void): void {
  whenSignedOut = handler;
}

export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.ifMatch) headers["If-Match"] = `"${options.ifMatch}"`;
  if (options.once) headers["Idempotency-Key"] = options.once;
  let response: Response;
  try {
    response = await fetch(path, {
      method: options.method ?? "GET",
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      credentials: "same-origin",
      signal: options.signal,
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Problem(0, "Unreachable", "the controller does not answer; the page tries again");
  }
  if (!response.ok) {
    const problem = await problemOf(response);
    if (response.status === 401 && path !== "/v1/session" && path !== "/v1/login") whenSignedOut();
    throw problem;
  }
  const text = await response.text();
  return (text ? JSON.parse(text) : null) as T;
}

export function asProblem(error: unknown): Problem {
  return error instanceof Problem
    ? error
    : new Problem(0, "Unknown", error instanceof Error ? error.message : String(error));
}
