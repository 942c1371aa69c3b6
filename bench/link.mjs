// `node bench/link.mjs PORT MIB`: forwards connections to 127.0.0.1:PORT, each at MIB MiB a second
// in each direction. Prints `listening PORT`.
import { connect, createServer } from "node:net";
import { Transform } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";

const [port, mibPerSecond] = process.argv.slice(2).map(Number);
const bytesPerMs = (mibPerSecond * 1024 * 1024) / 1000;
/** How far a sender may be ahead of the rate, because timers of 1 ms fire late. */
const BURST_MS = 4;

const server = createServer({ noDelay: true, allowHalfOpen: true }, (client) => {
  const upstream = connect({ port, host: "127.0.0.1", noDelay: true, allowHalfOpen: true });
  client.pipe(paced()).pipe(upstream);
  upstream.pipe(paced()).pipe(client);
  for (const [end, other] of [
    [client, upstream],
    [upstream, client],
  ]) {
    end.on("error", () => other.destroy());
  }
});
server.listen(0, "127.0.0.1", () => console.log(`listening ${server.address().port}`));

/** Passes each chunk when the link would have delivered it. */
function paced() {
  let freeAtMs = 0;
  return new Transform({
    async transform(chunk, _encoding, done) {
      const nowMs = performance.now();
      freeAtMs = Math.max(freeAtMs, nowMs - BURST_MS) + chunk.byteLength / bytesPerMs;
      if (freeAtMs > nowMs + 1) await delay(freeAtMs - nowMs);
      done(null, chunk);
    },
  });
}
