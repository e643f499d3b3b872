// Zoom of timelines and their ruler; opens a picture wider than its place at the steady state. Every page is whole without it.
"use strict";
for (const timeline of document.querySelectorAll(".timeline[data-seconds]")) {
  const pan = timeline.querySelector(".pan");
  const sheet = timeline.querySelector(".zoom");
  const ruler = timeline.querySelector(".ruler");
  const tools = timeline.previousElementSibling;
  const total = Number(timeline.dataset.seconds);
  let zoom = 1;

  const label = (seconds, step) =>
    step >= 1 ? seconds.toFixed(0) + " s"
    : step >= 0.1 ? seconds.toFixed(1) + " s"
    : step >= 0.001 ? (seconds * 1e3).toFixed(0) + " ms"
    : (seconds * 1e3).toFixed(2) + " ms";

  const drawRuler = () => {
    const least = total * 90 / (pan.clientWidth * zoom || 900);
    const power = 10 ** Math.floor(Math.log10(least));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= least);
    ruler.replaceChildren();
    for (let i = 0; i * step < total - least / 2; ++i) {  // the last one has room for its text
      const mark = document.createElement("span");
      mark.style.left = 100 * i * step / total + "%";
      mark.textContent = label(i * step, step);
      ruler.append(mark);
    }
  };

  // Keeps the moment under `at` (pixels from the left edge of the view) where it is.
  const zoomTo = (wanted, at) => {
    const next = Math.min(400, Math.max(1, wanted));
    const moment = (pan.scrollLeft + at) / zoom;
    zoom = next;
    sheet.style.width = 100 * zoom + "%";
    pan.scrollLeft = moment * zoom - at;
    drawRuler();
  };

  tools.addEventListener("click", (event) => {
    const factor = event.target.dataset.zoom;
    if (factor) zoomTo(factor === "fit" ? 1 : zoom * Number(factor), pan.clientWidth / 2);
  });
  pan.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.altKey) return;
    event.preventDefault();
    const at = event.clientX - pan.getBoundingClientRect().left;
    zoomTo(zoom * Math.exp(-event.deltaY / 300), at);
  }, {passive: false});
  pan.addEventListener("dblclick", (event) => {
    zoomTo(zoom * 2, event.clientX - pan.getBoundingClientRect().left);
  });
  addEventListener("resize", drawRuler);
  drawRuler();
}

const wide = [...document.querySelectorAll(".pan[data-open]")];
for (const pan of wide) {
  pan.scrollLeft = Number(pan.dataset.open);
  pan.addEventListener("scroll", () => {  // pictures with one axis move together
    for (const other of wide) other.scrollLeft = pan.scrollLeft;
  });
}
