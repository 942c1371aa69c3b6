import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { createAdminServer } from "../../../src/admin/admin-server.ts";
import { createLogger } from "../../../src/observability/logger.ts";
import { eventually } from "../../support/eventually.ts";
import { fixedBound } from "../../support/fixed-bound.ts";

const ADMIN_TAKING_MS = fixedBound("src/admin/admin-server.ts", "ADMIN_TAKING_MS");
/** More than the buffers of a loopback connection hold. */
const LONG = "x".repeat(16 * 1024 * 1024);

async function connected(port: number, path: string, requests: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {}).pause();
  await once(socket, "connect");
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(requests));
  return socket;
}

it("an admin client that takes no byte of an answer loses its connection, one that is slow does not", async () => {
  const expose = (): Promise<string> => Promise.resolve(LONG);
  const server = createAdminServer({
    readinessChecks: {},
    metrics: { expose, exposeOpenMetrics: expose },
    listSessions: () => ({ sessions: [], partial: [] }),
    limits: { maxAdminConnections: 20 },
    logger: createLogger({ level: "silent" }),
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const ended: Socket[] = [];
  let open = 0;
  server.on("connection", (socket: Socket) => {
    open += 1;
    socket.once("close", () => ended.push(socket));
  });
  const startMs = performance.now();
  await Promise.all([connected(port, "/metrics", 1), connected(port, "/metrics", 30)]);
  const slow = await connected(port, "/metrics", 1);
  let takenBytes = 0;
  const take = (part: Buffer): void => {
    takenBytes += part.length;
    slow.pause();
  };
  slow.on("data", take);
  // Longer than the bound in all, so that it would not be whole before.
  const taking = setInterval(() => slow.resume(), 100);
  onTestFinished(() => clearInterval(taking));
  // The timer restarts once for the bytes that the kernel took at first.
  await eventually("the ends of those that read nothing", () => ended.length === 2, {
    timeoutMs: 3 * ADMIN_TAKING_MS,
  });
  expect(open).toBe(3);
  expect(performance.now() - startMs).toBeGreaterThan(ADMIN_TAKING_MS - 100);
  clearInterval(taking);
  expect(takenBytes).toBeLessThan(LONG.length);
  slow
    .off("data", take)
    .on("data", (part: Buffer) => {
      takenBytes += part.length;
    })
    .resume();
  await eventually("all of the slow one's answer", () => takenBytes > LONG.length);
});
