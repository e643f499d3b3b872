// Jobs by their place in a list of any length. Without filters a place is a number, since numbers of
// jobs have no gaps: any part of the list is one request away. With filters pages follow each other.
import { asProblem, type Problem, request } from "../api/client";
import type { Job, List } from "../api/types";
import { jobs, newest } from "./collections";

const pageSize = 200;
const pagesAtOnce = 2;

export interface JobFilter {
  phase: string;
  queue: string;
  user: string;
}

export class JobPages {
  count = 0;
  top = 0; // the number of the job in the first place
  next: string | undefined; // where a filtered list goes on
  problem: Problem | undefined;
  isLoading = true;
  private ids: string[] = []; // of a filtered list
  private pages = new Map<number, "asked" | "there">();
  private running = 0;
  private wanted: { first: number; end: number } = { first: 0, end: 40 };
  private isStopped = false;

  constructor(
    readonly filter: JobFilter,
    private readonly onChange: () => void,
  ) {}

  get isFiltered(): boolean {
    return !!(this.filter.phase || this.filter.queue || this.filter.user);
  }

  private path(after: string | undefined, limit: number): string {
    const query = new URLSearchParams({ limit: String(limit) });
    for (const [key, value] of Object.entries(this.filter)) if (value) query.set(key, value);
    if (after) query.set("after", after);
    return `/v1/jobs?${query}`;
  }
  get query(): string {
    return `GET ${this.path(undefined, pageSize)}`;
  }

  async start(): Promise<void> {
    await this.fetch(undefined, (list) => {
      const first = list.items[0];
      if (this.isFiltered) this.append(list);
      else {
        this.top = first ? Number(first.id) : 0;
        newest.id = Math.max(newest.id, this.top);
        this.count = list.total ?? list.items.length;
        this.pages.set(0, "there");
      }
      this.isLoading = false;
    });
    this.isLoading = false;
    this.onChange();
  }

  stop(): void {
    this.isStopped = true;
  }

  at(index: number): Job | undefined {
    return jobs.items.get(this.isFiltered ? (this.ids[index] ?? "") : String(this.top - index));
  }

  // New jobs stand above the first place until they are taken in.
  get waitingAbove(): number {
    return this.isFiltered ? 0 : Math.max(0, newest.id - this.top);
  }
  takeNew(): void {
    const more = this.waitingAbove;
    if (more === 0) return;
    this.top += more;
    this.count += more;
    this.pages.clear();
    this.seen(this.wanted.first, this.wanted.end);
  }

  // Fetches what these places need, the latest wish first.
  seen(first: number, end: number): void {
    this.wanted = { first, end };
    this.pump();
  }

  private pump(): void {
    if (this.isStopped || this.isLoading || this.running >= pagesAtOnce) return;
    const { first, end } = this.wanted;
    if (this.isFiltered) {
      if (this.next && end + 60 > this.count && this.running === 0)
        void this.fetch(this.next, (list) => this.append(list));
      return;
    }
    const from = Math.floor(first / pageSize);
    const to = Math.floor(Math.max(first, Math.min(this.count, end) - 1) / pageSize);
    for (let page = from; page <= to && this.running < pagesAtOnce; ++page) {
      if (this.pages.has(page)) continue;
      if (this.isWhole(page)) {
        this.pages.set(page, "there");
        continue;
      }
      this.pages.set(page, "asked");
      void this.fetch(
        String(this.top - page * pageSize + 1),
        () => void this.pages.set(page, "there"),
        () => this.pages.delete(page),
      );
    }
  }

  private isWhole(page: number): boolean {
    const end = Math.min(this.count, (page + 1) * pageSize);
    for (let index = page * pageSize; index < end; ++index) if (!this.at(index)) return false;
    return true;
  }

  private append(list: List<Job>): void {
    const known = new Set(this.ids);
    for (const job of list.items) if (!known.has(job.id)) this.ids.push(job.id);
    this.count = this.ids.length;
    this.next = list.next;
  }

  private async fetch(
    after: string | undefined,
    take: (list: List<Job>) => void,
    fail?: () => void,
  ): Promise<void> {
    ++this.running;
    try {
      const list = await request<List<Job>>(this.path(after, pageSize));
      for (const job of list.items) jobs.put(job);
      take(list);
      this.problem = undefined;
    } catch (error) {
      fail?.();
      this.problem = asProblem(error);
    }
    --this.running;
    if (this.isStopped) return;
    this.onChange();
    if (!this.problem) this.pump();
  }
}
