import { afterEach, expect, it } from "vitest";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { startHaproxy } from "../support/layer7-proxies.ts";
import { describeReal } from "../support/real-parts.ts";
import { ResumableGateway } from "../support/resumable-gateway.ts";
import { ResumedShell } from "../support/resumed-shell.ts";

describeReal("haproxy", "a shell behind HAProxy", () => {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });

  it("goes on when HAProxy is stopped, and another one comes in its place", async () => {
    const gateway = await ResumableGateway.start();
    stops.push(() => gateway.stop());
    const first = await startHaproxy(gateway.port);
    // The address that the client knows.
    const front = await startFaultProxy(Number(new URL(first.url).port), { cutAfterBytes: 1e12, maxCuts: 0 });
    stops.push(() => front.close());
    const shell = new ResumedShell(`https://127.0.0.1:${front.port}`);
    await shell.type("kept=6; echo ready-$((kept * 7))", "ready-42");

    await first.stop();
    await expect.poll(() => shell.notes.join()).toContain("connection lost");
    const second = await startHaproxy(gateway.port);
    stops.push(() => second.stop());
    front.targetPort = Number(new URL(second.url).port);

    await shell.type("echo still-$((kept * 9))", "still-54");
    expect(shell.notes).toContain("session resumed");
    await shell.type("exit 5", "exit 5");
    expect((await shell.ended).exitCode).toBe(5);
  });
});
