// Output of one rank: follows while the end is seen; search marks lines and walks from hit to hit.
import { useEffect, useMemo, useReducer, useRef, useState } from "react";
import { LogStream } from "../live/log_stream";
import { number, t } from "../texts";
import { Trouble } from "./card";

const lineHeight = 18;

export function LogReader({ path, label }: { path: string; label: string }) {
  const [version, redraw] = useReducer((count: number) => count + 1, 0);
  const [words, setWords] = useState("");
  const [isFollowing, setFollowing] = useState(true);
  const [hit, setHit] = useState(0);
  const [window_, setWindow] = useState({ first: 0, end: 60 });
  const stream = useRef<LogStream>(undefined);
  const box = useRef<HTMLDivElement>(null);

  useEffect(() => {
    let frame = 0;
    const reader = new LogStream(path, () => {
      if (!frame)
        frame = requestAnimationFrame(() => {
          frame = 0;
          redraw();
        });
    });
    stream.current = reader;
    redraw();
    void reader.read();
    return () => {
      cancelAnimationFrame(frame);
      reader.stop();
    };
  }, [path]);

  const lines = stream.current?.lines ?? [];
  const hits = useMemo(() => {
    if (!words) return [];
    const wanted = words.toLowerCase();
    const found: number[] = [];
    lines.forEach((line, index) => {
      if (line.text.toLowerCase().includes(wanted)) found.push(index);
    });
    return found;
  }, [words, version, lines]);

  const measure = () => {
    const element = box.current;
    if (!element) return;
    const first = Math.max(0, Math.floor(element.scrollTop / lineHeight) - 10);
    const end = Math.ceil((element.scrollTop + element.clientHeight) / lineHeight) + 10;
    setWindow((before) => (before.first === first && before.end === end ? before : { first, end }));
  };
  useEffect(() => {
    const element = box.current;
    if (element && isFollowing) element.scrollTop = element.scrollHeight;
    measure();
  }, [version, isFollowing]);
  const jump = (to: number) => {
    if (hits.length === 0) return;
    const next = (to + hits.length) % hits.length;
    setHit(next);
    setFollowing(false);
    if (box.current)
      box.current.scrollTop = (hits[next] ?? 0) * lineHeight - box.current.clientHeight / 2;
  };
  const problem = stream.current?.problem;
  return (
    <div className="log">
      <div className="tools">
        <input
          type="search"
          aria-label={t("log.search")}
          placeholder={t("log.search")}
          value={words}
          onChange={(event) => {
            setWords(event.target.value);
            setHit(0);
          }}
          onKeyDown={(event) => event.key === "Enter" && jump(hit + (event.shiftKey ? -1 : 1))}
        />
        <span className="quiet" role="status">
          {words
            ? t("log.hits", { count: hits.length })
            : t("log.lines", { count: lines.length + (stream.current?.dropped ?? 0) })}
        </span>
        {words && (
          <>
            <button type="button" className="small" onClick={() => jump(hit - 1)}>
              {t("log.previous")}
            </button>
            <button type="button" className="small" onClick={() => jump(hit + 1)}>
              {t("log.next")}
            </button>
          </>
        )}
        <span className="grow" />
        {!!stream.current?.dropped && (
          <span className="quiet">{t("log.dropped", { count: stream.current.dropped })}</span>
        )}
        <span className={stream.current?.isOpen ? "live" : "quiet"}>
          {stream.current?.isOpen ? t("log.open") : t("log.ended")}
        </span>
        <button
          type="button"
          className="small"
          aria-pressed={isFollowing}
          onClick={() => setFollowing(!isFollowing)}
        >
          {t("log.follow")}
        </button>
        <a className="button" href={path.replace("&follow=true", "")} download>
          {t("log.download")}
        </a>
      </div>
      {problem ? (
        <div className="body empty">
          <Trouble problem={problem} what={t("log.these")} />
        </div>
      ) : (
        <div
          className="lines"
          ref={box}
          tabIndex={0}
          role="log"
          aria-live="off"
          aria-label={label}
          onScroll={() => {
            measure();
            const element = box.current;
            if (
              element &&
              isFollowing &&
              element.scrollHeight - element.scrollTop - element.clientHeight > 40
            )
              setFollowing(false);
          }}
        >
          <div style={{ height: lines.length * lineHeight }} />
          {lines.slice(window_.first, window_.end).map((line, place) => {
            const index = window_.first + place;
            return (
              <div
                key={line.number}
                className={words && hits[hit] === index ? "line hit" : "line"}
                style={{ top: index * lineHeight }}
              >
                <span aria-hidden="true">{number(line.number)}</span>
                {words ? marked(line.text, words) : line.text}
              </div>
            );
          })}
        </div>
      )}
    </div>
  );
}

function marked(text: string, words: string) {
  const parts = [];
  const lower = text.toLowerCase();
  const wanted = words.toLowerCase();
  let at = 0;
  for (
    let found = lower.indexOf(wanted);
    found >= 0 && parts.length < 100;
    found = lower.indexOf(wanted, at)
  ) {
    parts.push(
      text.slice(at, found),
      <mark key={found}>{text.slice(found, found + words.length)}</mark>,
    );
    at = found + words.length;
  }
  return [...parts, text.slice(at)];
}
