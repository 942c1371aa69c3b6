import { afterEach, expect, it } from "vitest";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { ResumableGateway } from "../../support/resumable-gateway.ts";
import { ResumedShell } from "../../support/resumed-shell.ts";

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

/** A gateway at the edge that passes everything on to the one behind it. */
async function startEdge(port: number): Promise<FrontDoor> {
  const door = await FrontDoor.start(
    [...serviceObjects("inner", [{ port }]), ingressObject("all", { defaultBackend: backend("inner") })],
    {},
    { timeouts: { shutdownGracePeriod: "0s" } },
  );
  await door.serves(1);
  return door;
}

it("a shell goes on when the gateway at the edge is stopped, and another one comes in its place", async () => {
  const gateway = await ResumableGateway.start();
  stops.push(() => gateway.stop());
  const first = await startEdge(gateway.port);
  // The address that the client knows.
  const front = await startFaultProxy(first.httpPort, { cutAfterBytes: 1e12, maxCuts: 0 });
  stops.push(() => front.close());
  const shell = new ResumedShell(`http://127.0.0.1:${front.port}`);
  await shell.type("kept=6; echo ready-$((kept * 7))", "ready-42");

  await first.stop();
  await expect.poll(() => shell.notes.join()).toContain("connection lost");
  const second = await startEdge(gateway.port);
  stops.push(() => second.stop());
  front.targetPort = second.httpPort;

  await shell.type("echo still-$((kept * 9))", "still-54");
  expect(shell.notes).toContain("session resumed");
  await shell.type("exit 5", "exit 5");
  expect((await shell.ended).exitCode).toBe(5);
});
