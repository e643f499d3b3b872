#!/usr/bin/env python3
"""Draws curves of `regatta sched replay --json` as an SVG file for light and dark pages: allocation or utilisation, and waiting jobs, a
line for each policy.

    regatta sched replay TRACE --cluster CLUSTER --policy regatta fifo --json | tools/replay_curves.py [--used] > curves.svg
"""
import html
import json
import sys

WIDTH, HEIGHT, LEFT, TOP, GAP = 900, 180, 60, 40, 60
COLORS = ["#2f5fa8", "#c4703c", "#4c8c5a", "#8a5fa8", "#8c8c4c"]
DAY = 86400


def polyline(points, days, most, top, color):
    at = " ".join(f"{LEFT + WIDTH * x / days:.1f},{top + HEIGHT * (1 - y / most):.1f}" for x, y in points)
    return f'<polyline fill="none" stroke="{color}" stroke-width="1.3" points="{at}"/>'


def chart(replays, key, factor, title, top):
    curves = [[(point["from_s"] / DAY, factor * point[key]) for point in replay["curves"]] for replay in replays]
    days = max(x for curve in curves for x, _ in curve) or 1
    most = max(max(y for curve in curves for _, y in curve), 1e-9)
    parts = [f'<text x="{LEFT}" y="{top - 8}" font-weight="600">{html.escape(title)}</text>',
             f'<path fill="none" stroke="#8a94a6" d="M{LEFT},{top}v{HEIGHT}h{WIDTH}"/>']
    for part in (0, 0.5, 1):
        y = top + HEIGHT * (1 - part)
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{most * part:.3g}</text>')
        parts.append(f'<text x="{LEFT + WIDTH * part:.0f}" y="{top + HEIGHT + 16}" text-anchor="middle">{days * part:.3g} d</text>')
    parts += [polyline(curve, days, most, top, COLORS[i % len(COLORS)]) for i, curve in enumerate(curves)]
    return parts


def main():
    try:
        report = json.load(sys.stdin)
        replays = [replay for replay in report["replays"] if replay["curves"]]
        if not replays:
            raise KeyError("curves")
    except (ValueError, KeyError, TypeError) as error:
        print(f"replay_curves.py: standard input: no replay with curves ({error}); give it the output of regatta sched replay --json",
              file=sys.stderr)
        return 2
    parts = []
    for i, replay in enumerate(replays):
        parts.append(f'<rect x="{LEFT + 170 * i}" y="6" width="10" height="10" fill="{COLORS[i % len(COLORS)]}"/>'
                     f'<text x="{LEFT + 170 * i + 15}" y="15">{html.escape(replay["policy"])}</text>')
    if sys.argv[1:] == ["--used"]:
        parts += chart(replays, "used_share", 100, "compute at work, % of all devices", TOP + 20)
    else:
        parts += chart(replays, "allocated_share", 100, "allocated devices, %", TOP + 20)
    parts += chart(replays, "waiting_jobs", 1, "waiting jobs", TOP + 20 + HEIGHT + GAP)
    height = TOP + 2 * HEIGHT + GAP + 50
    print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 30} {height}" font-family="sans-serif" font-size="12" '
          f'fill="#6b7688">')
    print("\n".join(parts))
    print("</svg>")
    return 0


if __name__ == "__main__":
    sys.exit(main())
