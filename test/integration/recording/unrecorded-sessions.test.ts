import { Session } from "node:inspector/promises";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { execPath, SpdyExecutor, WebSocketExecutor } from "../../../packages/client/src/index.ts";
import { RecordedGateway } from "../../support/recording/recorded-gateway.ts";

const session = new Session();
let gateway: RecordedGateway | undefined;
beforeAll(async () => {
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
});
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
});
afterAll(async () => {
  await session.post("Profiler.stopPreciseCoverage");
  session.disconnect();
});

/** How often each function of src/recording ran since the last call. */
async function calls(): Promise<Map<string, number>> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const counts = new Map<string, number>();
  for (const { url, functions } of result) {
    const [, file] = /\/src\/recording\/(.+)\.ts/.exec(url) ?? [];
    if (file === undefined) continue;
    for (const { functionName, ranges } of functions) {
      const count = ranges[0]?.count ?? 0;
      const name = `${file}: ${functionName || "predicate"}`;
      if (count > 0) counts.set(name, (counts.get(name) ?? 0) + count);
    }
  }
  return counts;
}

const DECISION = ["beforeDial", "ruleFor", "matchedFacts", "predicate"].map((name) => `component: ${name}`);
const CLIENTS = { "WebSocket v5, translated": WebSocketExecutor, "SPDY, passed through": SpdyExecutor };

it.each(Object.entries(CLIENTS))("%s: no code of recording runs but its decision", async (_, Executor) => {
  const path = execPath({ namespace: "default", pod: "web", container: "main" }, [
    "head",
    "-c",
    "4194304",
    "/dev/zero",
  ]);
  const run = async (running: RecordedGateway): Promise<number> => {
    let bytes = 0;
    const stdout = {
      takePart: (part: Uint8Array): undefined => {
        bytes += part.byteLength;
      },
    };
    const end = await new Executor(running.target, path).stream({ stdout });
    expect(end.exitCode).toBe(0);
    return bytes;
  };
  const rules = [{ name: "others", match: { namespaces: ["other"] } }];
  gateway = await RecordedGateway.start({ recording: { rules } });
  await calls();
  for (let count = 0; count < 5; count++) expect(await run(gateway)).toBe(4 * 1024 * 1024);
  const ran = await calls();
  expect(ran.get("component: beforeDial")).toBe(5);
  // V8 loses the counts of a collected predicate, so it may report fewer calls, never more.
  expect([...ran].filter(([name, count]) => !DECISION.includes(name) || count > 5)).toEqual([]);
  await gateway.stop();

  gateway = await RecordedGateway.start();
  await calls();
  await run(gateway);
  await gateway.recordings();
  expect([...(await calls()).keys()]).toContain("command-recorder: onData");
});
