import { Readable } from "node:stream";
import { expect, it } from "vitest";
import type { HttpDownstream } from "../../../../packages/client/src/http/downstream/http-downstream.ts";
import type { Http1UpstreamConnection } from "../../../../packages/client/src/http/upstream/http1-upstream-connection.ts";
import { UpstreamRequestBody } from "../../../../src/http/upstream/upstream-request-body.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A connection whose kernel takes nothing until `take`. */
class StuckConnection {
  readonly writes: string[] = [];
  readonly #listeners: (() => void)[] = [];
  hasQueue = true;
  write(data: string | Uint8Array): boolean {
    this.writes.push(Buffer.from(data).toString());
    return true;
  }
  cork(): void {}
  uncork(): boolean {
    return true;
  }
  onceTaken(listener: () => void): void {
    this.#listeners.push(listener);
  }
  take(): void {
    for (const listener of this.#listeners.splice(0)) listener();
  }
}

async function begin(isChunked: boolean) {
  const body = new Readable({ read: () => {} });
  const connection = new StuckConnection();
  const downstream = { body, isChunked, isBodyComplete: true, trailers: [] };
  let isSent = false;
  const sending = new UpstreamRequestBody(
    downstream as unknown as HttpDownstream,
    connection as unknown as Http1UpstreamConnection,
    () => {
      isSent = true;
    },
  );
  await turn();
  await turn();
  return { body, connection, sending, wasSent: () => isSent };
}

it.each([false, true])("a byte a turn is one write behind what is stuck (chunked: %s)", async (isChunked) => {
  const { body, connection } = await begin(isChunked);
  for (let sent = 0; sent < 2_000; sent += 1) {
    body.push("a");
    await turn();
  }
  await turn();
  expect(connection.writes).toEqual([]);
  connection.take();
  const all = "a".repeat(2_000);
  expect(connection.writes).toEqual(isChunked ? ["7d0\r\n", all, "\r\n"] : [all]);
  body.push("b");
  await turn();
  await turn();
  connection.take();
  expect(connection.writes.join("")).toMatch(/b(?:\r\n)?$/);
});

it("behind 16 KiB of them the next do not wait", async () => {
  const { body, connection } = await begin(false);
  for (let sent = 0; sent < 40; sent += 1) {
    body.push("a".repeat(1_000));
    await turn();
  }
  await turn();
  expect(connection.writes.map(({ length }) => length)).toEqual([17_000, 17_000]);
});

it("the end of the body does not wait either", async () => {
  const { body, connection, wasSent } = await begin(false);
  body.push("abc");
  await turn();
  body.push(null);
  await turn();
  await turn();
  expect([connection.writes, wasSent()]).toEqual([["abc"], true]);
  connection.take();
  expect(connection.writes).toEqual(["abc"]);
});

it("a stopped one writes nothing when there is room again", async () => {
  const { body, connection, sending } = await begin(false);
  body.push("abc");
  await turn();
  sending.stop();
  connection.take();
  expect(connection.writes).toEqual([]);
});
