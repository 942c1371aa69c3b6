import { EventEmitter } from "node:events";
import type { Server, Socket } from "node:net";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { UnusedConnections } from "../../../src/listeners/unused-connections.ts";
import { fixedBound } from "../../support/fixed-bound.ts";

const FIRST_REQUEST_MS = fixedBound("src/listeners/unused-connections.ts", "FIRST_REQUEST_MS");

const server = new EventEmitter();
let connections: UnusedConnections;
let isDone: boolean;

beforeEach(() => {
  vi.useFakeTimers();
  server.removeAllListeners();
  connections = new UnusedConnections();
  connections.watch(server as Server);
  isDone = false;
});
afterEach(() => void vi.useRealTimers());

function accept(remotePort: number | undefined): Socket {
  const socket = Object.assign(new EventEmitter(), { remotePort, remoteAddress: "10.0.0.1" }) as Socket;
  server.emit("connection", socket);
  return socket;
}

function wait(timeoutMs: number): void {
  void connections.whenUsed(timeoutMs).then(() => {
    isDone = true;
  });
}

it("are waited for until each had its request, or has closed", async () => {
  const [first, , second] = [accept(1), accept(2), accept(undefined)];
  wait(20_000);
  // TLS: another object, the same peer.
  connections.used({ remotePort: 2, remoteAddress: "10.0.0.1" } as Socket);
  connections.used(second);
  await vi.advanceTimersByTimeAsync(0);
  expect(isDone).toBe(false);
  first.emit("close");
  await vi.advanceTimersByTimeAsync(0);
  expect(isDone).toBe(true);
});

it("are waited for while they are new, and no longer", async () => {
  accept(1);
  await vi.advanceTimersByTimeAsync(2_000);
  wait(20_000);
  await vi.advanceTimersByTimeAsync(FIRST_REQUEST_MS - 2_001);
  expect(isDone).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(isDone).toBe(true);
});

it("are not waited for past the caller's time, nor when they are old", async () => {
  accept(1);
  wait(100);
  await vi.advanceTimersByTimeAsync(100);
  expect(isDone).toBe(true);
  isDone = false;
  await vi.advanceTimersByTimeAsync(FIRST_REQUEST_MS);
  wait(20_000);
  await vi.advanceTimersByTimeAsync(0);
  expect(isDone).toBe(true);
});
