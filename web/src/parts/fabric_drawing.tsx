// Groups, their leaf switches, and the servers below each leaf, drawn as a tree.
import type { ClusterNode } from "../api/types";
import { go, link } from "../router";
import { t } from "../texts";
import { nodeState, nodeTone } from "./badge";

export interface Leaf {
  group: number;
  leaf: number;
  servers: ClusterNode[];
}

const square = 15;
const gap = 4;
const pad = 10;
const leafGap = 14;
const fills: Record<string, string> = {
  good: "var(--good)",
  warn: "var(--warn)",
  bad: "var(--bad)",
};

interface Placed {
  leaf: Leaf;
  x: number;
  y: number;
  width: number;
  height: number;
}

// Leaves side by side, in lines of at most `width`; each as wide as its servers need.
function place(leaves: Leaf[], width: number): { placed: Placed[]; height: number } {
  const placed: Placed[] = [];
  let x = 0;
  let y = 40;
  let lineHeight = 0;
  for (const leaf of leaves) {
    const columns = Math.max(5, Math.min(16, Math.ceil(Math.sqrt(leaf.servers.length * 2))));
    const own = columns * (square + gap) - gap + 2 * pad;
    const height = Math.ceil(leaf.servers.length / columns) * (square + gap) - gap + 2 * pad + 22;
    if (x > 0 && x + own > width) {
      x = 0;
      y += lineHeight + 30;
      lineHeight = 0;
    }
    placed.push({ leaf, x, y, width: own, height });
    x += own + leafGap;
    lineHeight = Math.max(lineHeight, height);
  }
  return { placed, height: y + lineHeight + 4 };
}

export function FabricDrawing({ leaves }: { leaves: Leaf[] }) {
  const width = 1160;
  const groups = [...new Set(leaves.map((leaf) => leaf.group))];
  return (
    <div className="stack">
      {groups.map((group) => {
        const own = leaves.filter((leaf) => leaf.group === group);
        const { placed, height } = place(own, width);
        const used = Math.max(...placed.map((each) => each.x + each.width));
        const servers = own.reduce((sum, leaf) => sum + leaf.servers.length, 0);
        return (
          <figure key={group}>
            <figcaption className="hidden-text">
              {t("fabric.group_words", { group, leaves: own.length, nodes: servers })}
            </figcaption>
            <svg
              viewBox={`-4 0 ${width + 8} ${height}`}
              width="100%"
              style={{ maxWidth: width + 8 }}
              role="group"
              aria-label={t("fabric.group_words", { group, leaves: own.length, nodes: servers })}
            >
              <rect
                x={0}
                y={2}
                width={used}
                height={22}
                rx={5}
                fill="var(--accent-soft)"
                stroke="var(--accent)"
              />
              <text x={10} y={17} fontSize={12} fill="var(--accent)" fontWeight={600}>
                {t("fabric.group", { group })}
              </text>
              {placed.map((each) => (
                <LeafDrawing key={each.leaf.leaf} {...each} />
              ))}
            </svg>
          </figure>
        );
      })}
      <p className="legend">
        <span>
          <i style={{ background: "var(--good)" }} />
          {t("node.ready")}
        </span>
        <span>
          <i style={{ background: "var(--good)", opacity: 0.35 }} />
          {t("fabric.idle")}
        </span>
        <span>
          <i style={{ background: "var(--warn)", borderRadius: "50%" }} />
          {t("fabric.leaving")}
        </span>
        <span>
          <i style={{ background: "var(--bad)", transform: "rotate(45deg)" }} />
          {t("devices.away")}
        </span>
      </p>
    </div>
  );
}

function LeafDrawing({ leaf, x, y, width, height }: Placed) {
  const columns = Math.floor((width - 2 * pad + gap) / (square + gap));
  return (
    <g transform={`translate(${x} ${y})`}>
      <path d={`M${width / 2} ${y > 45 ? -8 : -16}V0`} stroke="var(--line-strong)" fill="none" />
      <rect width={width} height={height} rx={6} fill="var(--ground)" stroke="var(--line)" />
      <text x={pad} y={18} fontSize={12} fill="var(--text)">
        {t("fabric.leaf", { leaf: leaf.leaf })}
      </text>
      {leaf.servers.map((node, index) => {
        const tone = nodeTone(node);
        const cx = pad + (index % columns) * (square + gap);
        const cy = pad + 20 + Math.floor(index / columns) * (square + gap);
        const words = `${node.name}: ${t(`node.${nodeState(node)}`)}, ${t("node.devices_of", { used: node.status.devices_in_use, total: node.devices })}`;
        return (
          <a
            key={node.id}
            href={link("nodes", node.name)}
            aria-label={words}
            onClick={() => go(link("nodes", node.name))}
          >
            <title>{words}</title>
            {tone === "warn" ? (
              <circle cx={cx + square / 2} cy={cy + square / 2} r={square / 2} fill={fills.warn} />
            ) : (
              <rect
                x={cx}
                y={cy}
                width={square}
                height={square}
                rx={tone === "bad" ? 0 : 3}
                fill={fills[tone]}
                opacity={tone === "good" && node.status.replicas.length === 0 ? 0.35 : 1}
                transform={
                  tone === "bad" ? `rotate(45 ${cx + square / 2} ${cy + square / 2}) ` : undefined
                }
              />
            )}
          </a>
        );
      })}
    </g>
  );
}
