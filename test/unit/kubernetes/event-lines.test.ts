import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { eventLines } from "../../../src/kubernetes/list-pages.ts";

const line = (name: string) => `${JSON.stringify({ type: "ADDED", object: { metadata: { name } } })}\n`;

async function namesOf(chunks: readonly Buffer[], maxEventBytes?: number): Promise<string[]> {
  async function* given() {
    yield* chunks;
  }
  const names: string[] = [];
  for await (const { object } of eventLines(given(), maxEventBytes)) {
    names.push((object as { metadata: { name: string } }).metadata.name);
  }
  return names;
}

describe("eventLines", () => {
  it("gives the same events however the bytes are cut", async () => {
    const bytes = Buffer.from(`${line("a")}\n${line("ü😀")}${line("c")}`);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.byteLength), { maxLength: 8 }), async (cuts) => {
        const edges = [0, ...cuts.sort((a, b) => a - b), bytes.byteLength];
        const chunks = edges.slice(1).map((end, index) => bytes.subarray(edges[index], end));
        expect(await namesOf(chunks)).toEqual(["a", "ü😀", "c"]);
      }),
    );
  });

  it.each([
    ["no JSON", "<html>\n"],
    ["another type", '{"type":"OTHER","object":{}}\n'],
    ["null", "null\n"],
    ["half an event", '{"type":"ADDED"'],
  ])("refuses %s", async (_, text) => {
    await expect(namesOf([Buffer.from(line("a") + text)])).rejects.toMatchObject({
      name: "MalformedAnswerError",
    });
  });

  it("refuses an endless event", async () => {
    const chunks = Array<Buffer>(11).fill(Buffer.alloc(100, "x"));
    await expect(namesOf(chunks, 1_000)).rejects.toThrow("more than 1000 bytes");
  });
});
