// A list of any length of which only the rows that are seen exist. A row keeps its element while it is
// seen, and elements stand in the order of the list, for those who hear it.
import {
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";

export interface SeenRows {
  first: number;
  end: number;
}
interface VirtualRowsProps {
  label: string;
  count: number;
  rowHeight: number;
  columns: number;
  header: ReactNode;
  row: (index: number, isActive: boolean) => ReactNode; // the cells
  onSeen?: (rows: SeenRows) => void;
  onOpen: (index: number) => void;
  rowClass: string;
}

const spare = 6; // rows beyond each edge

export function VirtualRows(props: VirtualRowsProps) {
  const { label, count, rowHeight, columns, header, row, onSeen, onOpen, rowClass } = props;
  const box = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState<SeenRows>({ first: 0, end: 40 });
  const [active, setActive] = useState(-1);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    let frame = 0;
    const measure = () => {
      frame = 0;
      const first = Math.max(0, Math.floor(element.scrollTop / rowHeight) - spare);
      const end = Math.ceil((element.scrollTop + element.clientHeight) / rowHeight) + spare;
      setSeen((before) => (before.first === first && before.end === end ? before : { first, end }));
    };
    const later = () => {
      if (!frame) frame = requestAnimationFrame(measure);
    };
    measure();
    element.addEventListener("scroll", later, { passive: true });
    const watcher = new ResizeObserver(later);
    watcher.observe(element);
    return () => {
      element.removeEventListener("scroll", later);
      watcher.disconnect();
      cancelAnimationFrame(frame);
    };
  }, [rowHeight]);

  const first = Math.min(seen.first, Math.max(0, count - 1));
  const end = Math.min(count, seen.end);
  useEffect(() => onSeen?.({ first, end }), [first, end, onSeen]);

  const choose = (index: number) => {
    const element = box.current;
    if (!element || count === 0) return;
    const next = Math.max(0, Math.min(count - 1, index));
    setActive(next);
    const top = next * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = top + rowHeight - element.clientHeight;
  };
  const press = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 320) / rowHeight) - 1);
    const targets: Record<string, number> = {
      ArrowDown: active + 1,
      ArrowUp: active - 1,
      PageDown: active + page,
      PageUp: active - page,
      Home: 0,
      End: count - 1,
    };
    const target = targets[event.key];
    if (target !== undefined) {
      event.preventDefault();
      choose(target);
    } else if (event.key === "Enter" && active >= 0 && event.target === event.currentTarget)
      onOpen(active);
  };

  const rows: ReactNode[] = [];
  for (let index = first; index < end; ++index)
    rows.push(
      <div
        key={index}
        id={`row-${index}`}
        role="row"
        aria-rowindex={index + 2}
        aria-selected={index === active}
        className={index === active ? `${rowClass} active` : rowClass}
        style={{ transform: `translateY(${index * rowHeight}px)` }}
        onClick={() => setActive(index)}
        onDoubleClick={() => onOpen(index)}
      >
        {row(index, index === active)}
      </div>,
    );
  return (
    <div
      className="card rows"
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      aria-colcount={columns}
    >
      <div role="rowgroup">
        <div role="row" aria-rowindex={1} className={`${rowClass} head-row`}>
          {header}
        </div>
      </div>
      <div
        ref={box}
        className="row-scroll"
        role="rowgroup"
        tabIndex={0}
        aria-label={label}
        aria-activedescendant={active >= first && active < end ? `row-${active}` : undefined}
        onKeyDown={press}
        onFocus={(event) =>
          event.target === event.currentTarget &&
          active < 0 &&
          setActive(first + (first > 0 ? spare : 0))
        }
      >
        <div role="presentation" style={{ height: count * rowHeight }} />
        {rows}
      </div>
    </div>
  );
}
