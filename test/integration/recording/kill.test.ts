import { readFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { execPath, Target, WebSocketExecutor } from "../../../packages/client/src/index.ts";
import type { FakeNode } from "../../../packages/lab/src/fake-node/fake-node.ts";
import { eventually } from "../../support/eventually.ts";
import { runWebNode } from "../../support/fake-nodes.ts";
import { GatewayFiles, TESTER_TOKEN, webOn } from "../../support/gateway-files.ts";
import { play } from "../../support/recording/played.ts";
import { filesIn } from "../../support/recording/recorded-gateway.ts";
import { type ServedGateway, serveGateway } from "../../support/served-gateway.ts";
import { Sluice } from "../../support/sluice.ts";

/** Releases are tested with SLUICE_KILLS=50, which takes about four minutes. */
const KILLS = Number(process.env.SLUICE_KILLS ?? 3);

let files: GatewayFiles;
let node: FakeNode;
let gateway: ServedGateway | undefined;
beforeEach(async () => {
  node = await runWebNode();
  files = new GatewayFiles();
  const recording = {
    folder: path.join(files.folder, "recordings"),
    rules: [{ name: "all" }],
    minFreeBytes: 0,
  };
  files.configure({ ...webOn(node.port), configuration: { recording } });
});
afterEach(async () => {
  await gateway?.stop();
  await node.close();
  files.remove();
});

/**
 * Commands that print steadily, as fast as they can, and slowly with cuts within characters. Their sleeps only pace
 * the output: the test waits for none.
 */
const COMMANDS = [
  ["sh", "-c", "i=0; while sleep 0.004; do i=$((i+1)); echo line $i; done"],
  ["sh", "-c", "i=0; while :; do i=$((i+1)); echo a long line of a flood $i; done"],
  ["sh", "-c", "while sleep 0.05; do printf '\\303'; sleep 0.03; printf '\\244 \\377'; done"],
];

class Received {
  readonly #parts: [atMs: number, part: Buffer][] = [];
  bytes = 0;

  takePart(part: Uint8Array): undefined {
    this.bytes += part.byteLength;
    this.#parts.push([performance.now(), Buffer.from(part)]);
  }

  before(atMs: number): Buffer {
    return Buffer.concat(this.#parts.filter(([at]) => at <= atMs).map(([, part]) => part));
  }
}

it(
  `kill -9 of a running gateway, ${KILLS} times, loses less than a second of output`,
  async () => {
    const recordings = path.join(files.folder, "recordings");
    const sluice = new Sluice({});
    const checked = new Set<string>();
    let expected: { received: Received; killedMs: number }[] = [];
    for (let kill = 0; kill <= KILLS; kill++) {
      const started = await serveGateway(files.configurationFile);
      gateway = started;
      if (kill > 0) await checkLeft(recordings, checked, expected, sluice);
      if (kill === KILLS) break;
      expected = [];
      const target = new Target({
        url: started.ready.apiServerUrl,
        headers: () => [["Authorization", `Bearer ${TESTER_TOKEN}`]],
      });
      const sessions = COMMANDS.map((command) => {
        const received = new Received();
        const path = execPath({ namespace: "default", pod: "web", container: "main" }, command);
        const stream = new WebSocketExecutor(target, path).stream({ stdout: received });
        return {
          received,
          ended: stream.then(
            () => "end",
            () => "cut",
          ),
        };
      });
      await eventually("each session has output", () =>
        sessions.every(({ received }) => received.bytes > 10),
      );
      // Kills at any point between two chunks, and between two slabs for the thread.
      const until = sessions[0]?.received.bytes ?? 0;
      const more = 200 + ((kill * 613) % 4_000);
      await eventually("some output", () => (sessions[0]?.received.bytes ?? 0) > until + more);
      const killedMs = performance.now();
      started.child.kill("SIGKILL");
      await started.exited;
      expected = sessions.map(({ received }) => ({ received, killedMs }));
      expect(await Promise.all(sessions.map(({ ended }) => ended))).toEqual(COMMANDS.map(() => "cut"));
    }
    // Later starts do not change what earlier ones finished.
    await verify(sluice, [recordings], checked.size);
    expect(checked.size).toBe(KILLS * COMMANDS.length);
  },
  60_000 + KILLS * 12_000,
);

/** Reads only the recordings of the last kill, because those of all kills have gigabytes. */
async function checkLeft(
  folder: string,
  checked: Set<string>,
  expected: readonly { received: Received; killedMs: number }[],
  sluice: Sluice,
): Promise<void> {
  const casts = await eventually("the next start finishes what was left", () => {
    const found = filesIn(folder, ".cast").filter((file) => !checked.has(file));
    return found.length === COMMANDS.length && filesIn(folder, ".part").length === 0 && found;
  });
  for (const file of casts) checked.add(file);
  expect(filesIn(folder, ".changed")).toEqual([]);
  await verify(sluice, casts, COMMANDS.length);
  for (const [index, { received, killedMs }] of expected.entries()) {
    const command = COMMANDS[index] ?? [];
    const own = casts
      .map((file) => play(readFileSync(file, "utf8")))
      .filter(({ header }) => String(header.command) === command.join(" "));
    const all = received.before(killedMs + 60_000);
    // The recording and the client's output are the same stream, and either may lack its end.
    const match = own.find(({ stdout: recorded }) => {
      const length = Math.min(recorded.byteLength, all.byteLength);
      return (
        recorded.byteLength >= received.before(killedMs - 1_000).byteLength &&
        recorded.subarray(0, length).equals(all.subarray(0, length))
      );
    });
    expect(match?.of("m").at(-1)).toBe("ended: crash");
  }
}

async function verify(sluice: Sluice, places: readonly string[], wanted: number): Promise<void> {
  const { stdout, exitCode } = await sluice.run(["recordings", "verify", ...places]);
  const unchanged = stdout.split("\n").filter((line) => line.endsWith(": unchanged"));
  expect([exitCode, unchanged.length]).toEqual([0, wanted]);
}
