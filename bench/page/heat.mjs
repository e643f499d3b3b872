// A reply of GET /v1/devices for many nodes and events of their changes, made in the browser; the page
// reads them as it reads the controller's.

// `nodes` nodes with `devices` devices each stand in for the controller's.
export async function generatedDevices(page, { nodes, devices }) {
  const count = nodes * devices;
  const bytes = (of) =>
    Buffer.from(
      Uint8Array.from({ length: count }, (_, index) => of(index)),
    ).toString("base64");
  const reply = {
    cursor: "1",
    count,
    nodes: Array.from({ length: nodes }, (_, index) => `node-${index}`),
    counts: Buffer.alloc(nodes, devices).toString("base64"),
    sources: Buffer.alloc(nodes, 1).toString("base64"),
    use: bytes((index) => (index * 7) % 101),
    memory: bytes((index) => (index * 13) % 101),
    state: bytes(() => 1),
    job: Buffer.alloc(count * 4).toString("base64"),
  };
  await page.route("**/v1/devices", (route) => route.fulfill({ json: reply }));
  await page.addInitScript((total) => {
    const Real = window.EventSource;
    window.EventSource = class extends EventTarget {
      constructor(url) {
        super();
        if (!String(url).includes("kinds=device")) return new Real(url);
        window.deviceStream = this;
      }
      close() {}
    };
    // The text of an event that changes this share of all devices, in runs of eight.
    window.deviceEvent = (seed, share) => {
      const runs = [];
      for (let first = 0; first < total; first += 8)
        if (
          share === 1 ||
          (first * 2654435761 + seed * 40503) % 1000 < share * 1000
        )
          runs.push(first, 8);
      const changed = (runs.length / 2) * 8;
      let text = "";
      for (let i = 0; i < changed; ++i)
        text += String.fromCharCode((i * 31 + seed * 17) % 101);
      const base64 = btoa(text);
      return JSON.stringify({
        kind: "device",
        cursor: String(seed),
        use: { runs, use: base64, memory: base64 },
      });
    };
  }, count);
}

// For each update the time of its event's handler and of the frame that draws it, in ms.
export async function heatTimes(page, updates, share) {
  return page.evaluate(
    async ([count, part]) => {
      const times = [];
      const request = window.requestAnimationFrame;
      for (let i = 1; i <= count; ++i) {
        const data = window.deviceEvent(i, part);
        let spent = 0;
        let isDrawn;
        const drawn = new Promise((resolve) => (isDrawn = resolve));
        window.requestAnimationFrame = (callback) =>
          request((now) => {
            const start = performance.now();
            callback(now);
            // Microtasks of the callback belong to the frame, too.
            queueMicrotask(() =>
              queueMicrotask(() => {
                spent += performance.now() - start;
                isDrawn();
              }),
            );
          });
        const start = performance.now();
        window.deviceStream.dispatchEvent(new MessageEvent("device", { data }));
        spent += performance.now() - start;
        await drawn;
        window.requestAnimationFrame = request;
        const entries = performance.getEntriesByName("heat-map");
        if (entries.length !== 1)
          throw new Error(`${entries.length} drawings of an update`);
        performance.clearMeasures("heat-map");
        times.push(spent);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      return times;
    },
    [updates, share],
  );
}
