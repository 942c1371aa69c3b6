import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { collect } from "../../support/kubectl.ts";
import { Sluice } from "../../support/sluice.ts";

const MEBIBYTE = 1024 ** 2;
const FILE_BYTES = 192 * MEBIBYTE;
/** An empty recording takes half of it. */
const MOST_MEMORY = 100 * MEBIBYTE;
const LINE = `[0.000, "o", ${JSON.stringify("x\u001b[1mhello w\u00f6rld\r\n".repeat(2_000))}]\n`;
/**
 * Writes the most memory that was resident, in KiB, as the program's last words. What `getrusage` says
 * counts the process that started it, too.
 */
const REPORT = encodeURIComponent(
  `import { readFileSync } from "node:fs";
  process.on("exit", () => process._rawDebug(/VmHWM:\\s+(\\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]));`,
);

const sluice = new Sluice({ NODE_OPTIONS: `--import=data:text/javascript,${REPORT}` });
const folder = mkdtempSync(path.join(tmpdir(), "sluice-large-"));
const file = path.join(folder, "large.cast");
let lines = 0;

beforeAll(() => {
  const handle = openSync(file, "w");
  writeSync(handle, '{"version":3,"term":{"cols":80,"rows":24}}\n');
  const block = Buffer.from(LINE.repeat(40));
  for (let bytes = 0; bytes < FILE_BYTES; bytes += block.byteLength) {
    writeSync(handle, block);
    lines += 40;
  }
  closeSync(handle);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Reads the output a little slower than a program can write it. Returns its length and the memory. */
async function measured(args: readonly string[]): Promise<{ bytes: number; memory: number }> {
  const child = sluice.start(args);
  const stderr = collect(child.stderr);
  const closed = new Promise<number | null>((resolve) => child.once("close", resolve));
  let bytes = 0;
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes % 16 === 0) await wait(1);
  }
  expect([await closed, stderr()]).toEqual([0, expect.stringMatching(/^\d+\n$/)]);
  return { bytes, memory: Number(stderr()) * 1024 };
}

it.each([
  [["recordings", "export", file], () => 43 + lines * Buffer.byteLength(LINE)],
  [["recordings", "export", file, "--format", "raw"], () => lines * Buffer.byteLength(JSON.parse(LINE)[2])],
  [["recordings", "export", file, "--format", "asciicast-v2"], () => expect.any(Number)],
  [["replay", file, "--raw"], () => lines * Buffer.byteLength(JSON.parse(LINE)[2])],
])("%j of a recording of 192 MiB takes less than 100 MiB", async (args, expected) => {
  const { bytes, memory } = await measured(args);
  expect(bytes).toEqual(expected());
  expect(memory).toBeLessThan(MOST_MEMORY);
});
