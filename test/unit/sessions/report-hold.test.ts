import { describe, expect, it } from "vitest";
import type { SessionObserver } from "../../../src/sessions/observers/session-observer.ts";
import { CarriedSession, type MemorySocket } from "../../support/carried-session.ts";
import { type Begin, carriers } from "../../support/command-carriers.ts";
import { settle } from "../../support/session-peers.ts";

const SUCCESS = '{"metadata":{},"status":"Success"}';
const FAULT = "the recording cannot be written";

/** Delays the node's report until the test allows it. */
class Delaying implements SessionObserver {
  readonly isRequired = true;
  readonly payload = { node: true };
  reports = 0;
  allow: () => void = () => {};
  #isAllowed = false;
  onReport(): Promise<void> | undefined {
    this.reports += 1;
    if (this.#isAllowed) return undefined;
    return new Promise((resolve) => {
      this.allow = () => {
        this.#isAllowed = true;
        resolve();
      };
    });
  }
}

const all = Object.entries(carriers);

/** What `send` pushes into the socket, as one piece that the socket does not get yet. */
function captured(socket: MemorySocket, send: () => void): Buffer {
  const parts: Buffer[] = [];
  const push = socket.push.bind(socket);
  socket.push = (part) => parts.push(part) > 0;
  send();
  socket.push = push;
  return Buffer.concat(parts);
}

/** A command that has ended at its node: output and report arrive in one read, or in two from `cutAt` on. */
async function reported(begin: Begin, isV1: boolean, cutAt = 0) {
  const observer = new Delaying();
  const { carried, client, node } = begin(new CarriedSession({}, [observer]));
  for (const socket of [carried.client, carried.node]) socket.on("error", () => {});
  await settle(client, node);
  const sent = captured(carried.node, () => {
    node.send("stdout", "bin etc");
    if (!isV1) node.send("error", SUCCESS);
    for (const stream of ["stdout", "error"]) node.finish(stream);
    node.leave();
  });
  for (const part of [sent.subarray(0, cutAt), sent.subarray(cutAt)]) {
    if (part.byteLength > 0) carried.node.push(part);
    await settle(client, node);
  }
  return { observer, carried, client, node, sentBytes: sent.byteLength };
}

describe.each(all)("the report of a command, by %s", (name, begin) => {
  const isV1 = name.includes("v1");

  it("waits behind its output until the observers allow it", async () => {
    const { observer, carried, client, node } = await reported(begin, isV1);
    expect(client.received).toMatchObject({ stdout: "bin etc" });
    expect(client.received.error ?? "").toBe("");
    expect([observer.reports, carried.life.isOver]).toEqual([1, false]);
    observer.allow();
    await settle(client, node);
    expect(client.received).toMatchObject({ stdout: "bin etc", ...(!isV1 && { error: SUCCESS }) });
    carried.node.push(null);
    carried.client.push(null);
    await expect.poll(() => carried.causes, { timeout: 2_000 }).toEqual(["completed"]);
  });

  it("is replaced if the session is ended meanwhile", async () => {
    const { observer, carried, client, node } = await reported(begin, isV1);
    carried.life.cut("recording-failed", FAULT);
    observer.allow();
    await settle(client, node);
    expect(client.received.error).not.toContain(SUCCESS);
    expect(client.received.error).toContain(FAULT);
    expect(carried.causes).toEqual(["recording-failed"]);
  });

  it("is replaced wherever reads cut it", async () => {
    const { sentBytes } = await reported(begin, isV1);
    const withoutReason: number[] = [];
    for (let cutAt = 1; cutAt < sentBytes; cutAt++) {
      const { observer, carried, client, node } = await reported(begin, isV1, cutAt);
      carried.life.cut("recording-failed", FAULT);
      observer.allow();
      await settle(client, node);
      const error = client.received.error ?? "";
      if (error.includes(SUCCESS) || !error.includes(FAULT)) withoutReason.push(cutAt);
    }
    expect(withoutReason).toEqual([]);
  });

  it("does not wait where no observer delays it", async () => {
    const { carried, client, node } = begin(new CarriedSession());
    await settle(client, node);
    if (!isV1) node.send("error", SUCCESS);
    for (const stream of ["stdout", "error"]) node.finish(stream);
    node.leave();
    await settle(client, node);
    expect(client.received.error ?? "").toBe(isV1 ? "" : SUCCESS);
    carried.node.push(null);
    carried.client.push(null);
    await expect.poll(() => carried.causes, { timeout: 2_000 }).toEqual(["completed"]);
  });
});

describe.each(
  all.filter(([name]) => name.includes("passes through")),
)("behind a report, %s", (name, begin) => {
  const isV1 = name.includes("v1");

  it("a client that leaves meanwhile has not got it", async () => {
    const { observer, carried, client, node } = await reported(begin, isV1);
    carried.client.destroy();
    await expect.poll(() => carried.causes, { timeout: 2_000 }).toEqual(["client-gone"]);
    observer.allow();
    await settle(client, node);
    expect(carried.causes).toEqual(["client-gone"]);
  });

  it("a node whose connection breaks has reported all the same", async () => {
    const { observer, carried, client, node } = await reported(begin, isV1);
    carried.node.destroy(new Error("reset"));
    await settle(client, node);
    expect(carried.causes).toEqual([]);
    observer.allow();
    await settle(client, node);
    if (!isV1) expect(client.received.error).toBe(SUCCESS);
    carried.client.push(null);
    await expect.poll(() => carried.causes, { timeout: 2_000 }).toEqual(["completed"]);
  });
});
