import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { cancellationFor, ProbeDeadline } from "../../../src/probes/probe-deadline.ts";
import { probe } from "./probe.ts";

describe("a probe's time limit", () => {
  it("ends once, tells those who still listen, and late listeners too", async () => {
    const deadline = new ProbeDeadline(5);
    const heard: string[] = [];
    deadline.onOver(() => heard.push("kept"));
    deadline.onOver(() => heard.push("taken back"))();
    await deadline.sleep(60_000);
    deadline.onOver(() => heard.push("late"));
    await Promise.resolve();
    expect({ heard, reason: deadline.reason, left: deadline.remainingMs }).toEqual({
      heard: ["kept", "late"],
      reason: "deadline",
      left: 0,
    });
  });

  it("a deadline that was ended does not end again", async () => {
    const controller = new AbortController();
    const deadline = new ProbeDeadline(1, cancellationFor(controller.signal));
    deadline.end();
    controller.abort();
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect(deadline.reason).toBeUndefined();
  });

  it("an answer that lay unread while this process was busy counts", async () => {
    const server = createServer((_, response) => response.end("in time"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    server.on("request", () => {
      // The answer is on its way; then nothing is read until long after the time-out.
      setImmediate(() => {
        const untilMs = performance.now() + 250;
        while (performance.now() < untilMs);
      });
    });
    expect(await probe({ httpGet: { port } }, { timeoutMs: 100 })).toMatchObject({ message: "in time" });
    server.close();
  });
});
