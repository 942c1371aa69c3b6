import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { Backoff } from "../../../src/net/backoff.ts";
import { eventually } from "../../support/eventually.ts";
import { pod, startLive } from "./live.ts";

const ROUNDS = 2_000;
/** Code is compiled once, and the store remembers its last 1,000 changes: neither belongs to a round. */
const WARM_UP_ROUNDS = 500;
/** One kibibyte a round; a watch, its buffers and its socket are tens of them. Heaps of equal use differ by up to 1 MiB. */
const MAX_GROWTH_BYTES = ROUNDS * 1024;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

it("holds nothing after 2,000 rounds of broken watches, 410 and restarts", { timeout: 300_000 }, async () => {
  const { server, store, synced, live, lines } = await startLive({
    prepare: (api) => void api.apply({ apiVersion: "v1", kind: "Node", metadata: { name: "n" } }),
    tuning: { backoff: () => new Backoff({ firstMs: 1, maxMs: 2 }) },
    maxEvents: 100,
  });
  await synced();
  const faults = [
    () => server.watches.drop(),
    () => server.watches.end(),
    () => server.watches.garble(),
    () => {
      server.store.compact();
      server.watches.expire();
    },
    () => {
      server.faults.add("503");
      server.faults.add("cut");
      server.watches.drop();
    },
    async () => {
      await server.stop();
      await server.listen();
    },
  ];
  const round = async (index: number) => {
    await eventually("both are watched", () => server.watches.size === 2, { intervalMs: 1 });
    await faults[index % faults.length]?.();
    const name = `p${index}`;
    server.apply(pod(name));
    await eventually(`${name} came`, () => store.getPod("default", name) !== undefined, { intervalMs: 1 });
    server.remove("Pod", "default", name);
    await eventually(`${name} went`, () => store.getPod("default", name) === undefined, { intervalMs: 1 });
  };
  const held = async () => {
    await eventually("both are watched", () => server.watches.size === 2 && live.staleMs === 0);
    server.requests.length = lines.length = 0;
    for (let times = 0; times < 4; times++) {
      collectGarbage();
      await new Promise((resolve) => setImmediate(resolve));
    }
    const handles = process.getActiveResourcesInfo().filter((name) => /TCP|Timeout|Pipe/.test(name)).length;
    return { bytes: process.memoryUsage().heapUsed, handles, sockets: server.connections };
  };
  for (let index = 0; index < WARM_UP_ROUNDS; index++) await round(index);
  const before = await held();
  for (let index = 0; index < ROUNDS; index++) await round(index);
  const after = await held();
  expect(after.sockets).toBeLessThanOrEqual(before.sockets + 2);
  expect(after.handles).toBeLessThanOrEqual(before.handles + 8);
  expect(after.bytes - before.bytes).toBeLessThan(MAX_GROWTH_BYTES);
});
