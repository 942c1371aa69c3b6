import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { selfSignedPair } from "../../support/gateway-files.ts";
import {
  type BackendKind,
  compareBody,
  foreignBytes,
  type SeededBackend,
  startSeededBackend,
} from "../../support/seeded-answers.ts";

/** Memory that a body was read into is used again for other clients' bodies: each must get its own bytes, however late it reads. */

const BACKENDS: readonly (readonly [BackendKind, string | undefined])[] = [
  ["http/1.1", undefined],
  ["http/1.1 in chunks", undefined],
  ["https", "https"],
  ["h2c", "kubernetes.io/h2c"],
];

describe.each(BACKENDS)("behind the front door, of a backend that speaks %s,", (kind, appProtocol) => {
  let seeded: SeededBackend;
  let door: FrontDoor;

  beforeAll(async () => {
    seeded = await startSeededBackend(kind, await selfSignedPair("backend"));
    door = await FrontDoor.start([
      ...serviceObjects("app", [seeded], appProtocol === undefined ? {} : { appProtocol }),
      ingressObject("all", { defaultBackend: backend("app") }),
    ]);
    await door.serves(1);
  });
  afterAll(async () => {
    await door?.stop();
    await seeded?.stop();
  });

  it.each(["HTTP/1.1", "HTTP/2"] as const)("clients of %s that pause get their own bytes", async (client) => {
    expect(await foreignBytes(client, `http://127.0.0.1:${door.httpPort}`)).toEqual([]);
  });

  it.each(["HTTP/1.1", "HTTP/2"] as const)("and over TLS, of %s", async (client) => {
    expect(await foreignBytes(client, `https://127.0.0.1:${door.httpsPort}`)).toEqual([]);
  });
});

describe("a client that pipelines requests and reads nothing for a while", () => {
  const cleanups: (() => unknown)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  it.each([
    ["until the kernel's buffers are full", Array.from({ length: 30 }, () => 330_000)],
    ["behind a large body", [20_000_000, ...Array.from({ length: 29 }, () => 40_000)]],
  ])("gets its own bytes, %s", async (_how, lengths) => {
    const seeded = await startSeededBackend("http/1.1");
    cleanups.push(() => seeded.stop());
    const door = await FrontDoor.start([
      ...serviceObjects("app", [seeded]),
      ingressObject("all", { defaultBackend: backend("app") }),
    ]);
    cleanups.push(() => door.stop());
    await door.serves(1);
    const socket = connect(door.httpPort, "127.0.0.1").pause();
    cleanups.push(() => socket.destroy());
    for (const [body, length] of lengths.entries())
      socket.write(`GET /${body}/${length} HTTP/1.1\r\nHost: a\r\n\r\n`);
    expect(await foreignBytes("HTTP/2", `http://127.0.0.1:${door.httpPort}`)).toEqual([]);
    const bodies = await bodiesOf(socket, lengths);
    expect(bodies.map((bytes, body) => compareBody(bytes, body, lengths[body] as number))).toEqual(
      lengths.map(() => "ok"),
    );
  });
});

/** So many responses in a row, each with its length. */
async function bodiesOf(socket: Socket, lengths: readonly number[]): Promise<Buffer[]> {
  const expected = lengths.reduce((sum, length) => sum + length, 0);
  const parts: Buffer[] = [];
  let bytes = 0;
  socket.on("data", (part: Buffer) => {
    parts.push(part);
    bytes += part.byteLength;
  });
  socket.resume();
  const takeApart = (): Buffer[] => {
    let rest = Buffer.concat(parts);
    const bodies: Buffer[] = [];
    for (const length of lengths) {
      const start = rest.indexOf("\r\n\r\n") + 4;
      bodies.push(rest.subarray(start, start + length));
      rest = rest.subarray(start + length);
    }
    return bodies;
  };
  while (bytes < expected || takeApart().some((body, index) => body.byteLength < (lengths[index] as number)))
    await once(socket, "data");
  return takeApart();
}
