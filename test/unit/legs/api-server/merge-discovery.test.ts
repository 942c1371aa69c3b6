import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { expect, it } from "vitest";
import { withGroupAdded } from "../../../../src/legs/api-server/merge-discovery.ts";

/** Chunks of one byte: as many as one read of a socket can contain. */
const PARTS_OF_A_READ = 10_000;
// The bound under test.
const MAX_DISCOVERY_BYTES = 8 * 1024 * 1024;

it("an answer in chunks of one byte is held in as many parts as it had reads", () => {
  const sent: (readonly Uint8Array[])[] = [];
  const client = {
    headers: [],
    respond: (_status: number, _message: string, _headers: unknown, beginning: readonly Uint8Array[]) => {
      sent.push(beginning);
      return {};
    },
  };
  const { merging } = withGroupAdded(client as unknown as HttpDownstream, "application/json");
  merging.respond(200, "OK", [["Content-Type", "application/json"]] as never, []);
  const memory = Buffer.from("x");
  const read = new Array<Buffer>(PARTS_OF_A_READ).fill(memory);
  let reads = 0;
  for (; sent.length === 0; reads += 1) merging.write(read);
  expect(reads).toBe(Math.floor(MAX_DISCOVERY_BYTES / PARTS_OF_A_READ) + 1);
  expect(sent[0]?.length).toBeLessThanOrEqual(reads + 1);
  memory.fill("y");
  expect(sent[0]?.at(-1)?.at(-1)).toBe("x".charCodeAt(0));
});
