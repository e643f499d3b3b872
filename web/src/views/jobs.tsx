// All jobs, the newest first, as a list that holds 100,000 as easily as ten.
import { memo, useCallback, useEffect, useReducer, useRef, useState } from "react";
import { useQuery } from "../api/query";
import { type Job, jobPhases, type Queues } from "../api/types";
import { jobs as knownJobs, useVersion } from "../live/collections";
import { JobPages } from "../live/job_pages";
import { useSeconds } from "../live/seconds";
import { live } from "../live/stream";
import { PhaseBadge } from "../parts/badge";
import { PageHead, QueryButton, Trouble } from "../parts/card";
import { Icon } from "../parts/icon";
import { type SeenRows, VirtualRows } from "../parts/virtual_rows";
import { go, link, setQuery, usePlace } from "../router";
import { useSession } from "../session";
import { duration, moment, number, t } from "../texts";

const columns = [
  "job",
  "phase",
  "queue",
  "user",
  "devices_short",
  "priority",
  "submitted",
  "took",
  "reason",
];

function took(job: Job, now: number): string {
  const { started_ms: start, ended_ms: end, submitted_ms: submitted, phase } = job.status;
  if (phase === "pending") return duration(now - submitted);
  return start ? duration((end ?? now) - start) : "–";
}

// A row is drawn again only when its job has changed, or a second is over.
const Cells = memo(function Cells({ job, now }: { job: Job | undefined; now: number }) {
  if (!job)
    return (
      <>
        {columns.map((column) => (
          <span role="gridcell" key={column}>
            <span className="bone" />
          </span>
        ))}
      </>
    );
  const { status } = job;
  return (
    <>
      <span role="gridcell">
        <a href={link("jobs", job.handle)} tabIndex={-1}>
          {job.handle}
        </a>
      </span>
      <span role="gridcell">
        <PhaseBadge job={job} />
      </span>
      <span role="gridcell">{job.queue}</span>
      <span role="gridcell">{job.user}</span>
      <span role="gridcell" className="right">
        {number(status.devices)}
      </span>
      <span role="gridcell" className="right">
        {number(job.priority)}
      </span>
      <span role="gridcell" className="right">
        {moment(status.submitted_ms)}
      </span>
      <span role="gridcell" className="right">
        {took(job, now)}
      </span>
      <span role="gridcell" className="quiet" title={status.reason}>
        {status.phase === "pending" && status.start && (
          <b>{t("jobs.start", { time: moment(status.start.likely_ms) })} </b>
        )}
        {status.reason}
      </span>
    </>
  );
});

function usePages(filter: { phase: string; queue: string; user: string }) {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const key = `${filter.phase}/${filter.queue}/${filter.user}`;
  const pages = useRef<{ key: string; pages: JobPages }>(undefined);
  if (pages.current?.key !== key) {
    pages.current?.pages.stop();
    pages.current = { key, pages: new JobPages(filter, redraw) };
  }
  useEffect(() => {
    const now = pages.current?.pages;
    void now?.start();
    const stop = live.onListAgain(() => void now?.start());
    return () => {
      stop();
    };
  }, [key]);
  return pages.current.pages;
}

export default function Jobs() {
  const session = useSession();
  const place = usePlace();
  const filter = {
    phase: place.query.get("phase") ?? "",
    queue: place.query.get("queue") ?? "",
    user: place.query.get("user") ?? "",
  };
  const pages = usePages(filter);
  const queues = useQuery<Queues>("/v1/queues");
  useVersion(knownJobs);
  const now = useSeconds();
  const [isAtTop, setAtTop] = useState(true);
  const seen = useCallback(
    (rows: SeenRows) => {
      pages.seen(rows.first, rows.end);
      setAtTop(rows.first === 0 && rows.end < 80);
    },
    [pages],
  );
  // At the top of the list new jobs come in by themselves; further down they wait for the button.
  if (isAtTop) pages.takeNew();
  const above = pages.waitingAbove;
  return (
    <>
      <PageHead title={t("view.jobs")}>
        <span className="quiet" role="status">
          {pages.isLoading
            ? t("loading")
            : t(pages.next ? "jobs.count_more" : "jobs.count", { count: pages.count })}
        </span>
        <div className="actions">
          <QueryButton query={pages.query} title={t("view.jobs")} />
          {session.may("user") && (
            <a className="button main" href={link("submit")}>
              <Icon name="submit" /> {t("submit.job")}
            </a>
          )}
        </div>
      </PageHead>
      <div className="filters" role="search" aria-label={t("filters")}>
        <select
          aria-label={t("phase")}
          value={filter.phase}
          onChange={(event) => setQuery({ phase: event.target.value })}
        >
          <option value="">{t("all.phases")}</option>
          {jobPhases.map((phase) => (
            <option key={phase} value={phase}>
              {t(`phase.${phase}`)}
            </option>
          ))}
        </select>
        <select
          aria-label={t("queue")}
          value={filter.queue}
          onChange={(event) => setQuery({ queue: event.target.value })}
        >
          <option value="">{t("all.queues")}</option>
          {queues.data?.items.map((queue) => (
            <option key={queue.name}>{queue.name}</option>
          ))}
        </select>
        <UserFilter value={filter.user} />
        <button
          type="button"
          aria-pressed={filter.user === session.user}
          onClick={() => setQuery({ user: filter.user === session.user ? "" : session.user })}
        >
          {t("mine")}
        </button>
        {pages.isFiltered && (
          <button
            type="button"
            className="bare"
            onClick={() => setQuery({ phase: "", queue: "", user: "" })}
          >
            <Icon name="close" /> {t("filters.clear")}
          </button>
        )}
        {above > 0 && (
          <button type="button" className="main" onClick={() => pages.takeNew()}>
            {t("jobs.new", { count: above })}
          </button>
        )}
      </div>
      {pages.problem && <Trouble problem={pages.problem} />}
      {!pages.isLoading && pages.count === 0 ? (
        <p className="card empty">{t(pages.isFiltered ? "jobs.none_match" : "jobs.none")}</p>
      ) : (
        <VirtualRows
          key={`${filter.phase}/${filter.queue}/${filter.user}`}
          label={t("view.jobs")}
          count={pages.count}
          rowHeight={32}
          columns={columns.length}
          rowClass="job-row"
          onSeen={seen}
          onOpen={(index) => {
            const job = pages.at(index);
            if (job) go(link("jobs", job.handle));
          }}
          header={columns.map((column, index) => (
            <span
              key={column}
              role="columnheader"
              className={index > 3 && index < 8 ? "right" : undefined}
            >
              {t(column)}
            </span>
          ))}
          row={(index) => <Cells job={pages.at(index)} now={now} />}
        />
      )}
    </>
  );
}

function UserFilter({ value }: { value: string }) {
  const [words, setWords] = useState(value);
  useEffect(() => setWords(value), [value]);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        setQuery({ user: words.trim() });
      }}
    >
      <input
        type="search"
        aria-label={t("user")}
        placeholder={t("user")}
        value={words}
        onChange={(event) => setWords(event.target.value)}
        onBlur={() => words.trim() !== value && setQuery({ user: words.trim() })}
      />
    </form>
  );
}
