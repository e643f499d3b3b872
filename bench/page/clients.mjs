// N clients of the event stream over TLS: node clients.mjs URL FOLDER N. Prints a line when all are
// open, and on SIGTERM how many bytes and events they got.
import { readFileSync } from "node:fs";
import path from "node:path";
import tls from "node:tls";

const [address, folder, count] = process.argv.slice(2);
const url = new URL(address);
const ca = readFileSync(path.join(folder, "ca.pem"));
const token = readFileSync(path.join(folder, "admin.token"), "utf8").trim();
let open = 0;
let closed = 0;
let bytes = 0;
let events = 0;

let asked = 0;
// Opens a stream, then the next one, until all are asked for.
function connectNext() {
  if (asked === Number(count)) return;
  ++asked;
  const socket = tls.connect(
    {
      host: url.hostname,
      port: Number(url.port),
      ca,
      checkServerIdentity: () => undefined,
    },
    () =>
      socket.write(
        `GET /v1/watch?kinds=job,node,queues HTTP/1.1\r\nHost: ${url.host}\r\n` +
          `Authorization: Bearer ${token}\r\nAccept: text/event-stream\r\n\r\n`,
      ),
  );
  let isOpen = false;
  socket.on("data", (data) => {
    if (!isOpen) {
      isOpen = true;
      if (++open === Number(count)) console.log("open");
      connectNext();
    }
    bytes += data.length;
    for (
      let at = data.indexOf("id: ");
      at >= 0;
      at = data.indexOf("id: ", at + 4)
    )
      ++events;
  });
  socket.on("error", (error) => console.error(String(error)));
  socket.on("close", () => ++closed);
}
for (let i = 0; i < 20; ++i) connectNext();
process.on("SIGTERM", () => {
  console.log(JSON.stringify({ bytes, events, closed }));
  process.exit(0);
});
