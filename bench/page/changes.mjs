// Changes of jobs at a steady rate, spread over many held jobs: each is a durable write of its own.

export async function submitHeld(api, count, name = "held") {
  const ids = [];
  const batch = 4000;
  for (let made = 0; made < count; made += batch) {
    const jobs = Array.from(
      { length: Math.min(batch, count - made) },
      (_, index) => ({
        name: `${name}-${(made + index) % 97}`,
        hold: true,
        priority: (made + index) % 10,
        command: ["sleep", "1"],
        roles: [{ devices: 1, cpus: 0.1 }],
      }),
    );
    ids.push(...(await api("POST", "/v1/jobs", { jobs })).ids);
  }
  return ids;
}

// Sets priorities of `ids` in turn until the answer's stop() is called, which gives the number made.
export function changeSteadily(api, ids, perSecond) {
  let isStopped = false;
  let made = 0;
  let failed = 0;
  const start = performance.now();
  const timer = setInterval(() => {
    const due = ((performance.now() - start) / 1000) * perSecond;
    while (!isStopped && made < due) {
      const id = ids[made % ids.length];
      const priority = 10 + (Math.floor(made / ids.length) % 1000);
      ++made;
      api("PATCH", `/v1/jobs/${id}`, { priority }, { "If-Match": "*" }).catch(
        () => ++failed,
      );
    }
  }, 5);
  return () => {
    isStopped = true;
    clearInterval(timer);
    return { made, failed, seconds: (performance.now() - start) / 1000 };
  };
}
