import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, createServer, type Server, type Socket } from "node:net";
import { connect as tlsConnect } from "node:tls";
import { SessionClock } from "@sluice/client/internal/net/session-clock";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ConnectionDispatcher, type Recipient } from "../../../src/app/runtime/connection-dispatcher.ts";
import { createLogger } from "../../../src/observability/logger.ts";
import { fixedBound } from "../../support/fixed-bound.ts";

// The bounds under test.
const MAX_KEPT_CONNECTIONS = 4_096;
const MAX_WAITING_CONNECTIONS = 1_024;

class FakeWorker implements Recipient {
  isTaking = true;
  sessions = 0;
  /** Connections that it got, or that are on their way. */
  readonly taken: { id: number; socket: Socket; onLost: () => void }[] = [];

  take(_name: string, id: number, socket: Socket, onLost: () => void): void {
    this.taken.push({ id, socket, onLost });
  }
}

let server: Server;
let workers: FakeWorker[];
let refused: number;
let handOver: ConnectionDispatcher;
const clients: Socket[] = [];

beforeEach(async () => {
  workers = [new FakeWorker(), new FakeWorker()];
  refused = 0;
  server = createServer({ pauseOnConnect: true });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  handOver = new ConnectionDispatcher({
    recipients: () => workers,
    maxConnectionsPerAddress: 4,
    networkOf: (address) => address,
    onRefused: () => {
      refused += 1;
    },
    isTls: (listener) => listener === "ingress.https",
    lingerTimes: { lingerIdleMs: 1_000, lingerMaxMs: 2_000 },
    clock: new SessionClock(),
    logger: createLogger({ level: "silent" }),
  });
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  for (const { taken } of workers) for (const { socket } of taken) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

async function accept(name = "apiServer"): Promise<Socket> {
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.on("error", () => {});
  clients.push(client);
  const [socket] = await accepted;
  handOver.accept(name, socket);
  return socket;
}

/** A client's socket that nothing has been read from or written to. */
async function unread(name: string): Promise<Socket> {
  await accept(name);
  return clients.at(-1) as Socket;
}

const counts = () => workers.map(({ taken }) => taken.length);

describe("a connection goes to the worker with the least to do", () => {
  it("by sessions and open connections; of equals to the one that waited the longest", async () => {
    for (let times = 0; times < 2; times += 1) await accept();
    expect(counts()).toEqual([1, 1]);
    const [first, second] = workers as [FakeWorker, FakeWorker];
    first.sessions = 5;
    await accept();
    expect(counts()).toEqual([1, 2]);
    first.sessions = 0;
    handOver.closed(second.taken.map(({ id }) => id));
    await accept();
    expect(counts()).toEqual([1, 3]);
  });

  it("and not to one that does not serve", async () => {
    (workers[0] as FakeWorker).isTaking = false;
    for (let times = 0; times < 3; times += 1) await accept();
    expect(counts()).toEqual([0, 3]);
  });

  it("one that could not be handed over goes to another", async () => {
    await accept();
    const [lost] = (workers[0] as FakeWorker).taken;
    (workers[0] as FakeWorker).isTaking = false;
    lost?.onLost();
    await expect.poll(counts).toEqual([1, 1]);
    expect((workers[1] as FakeWorker).taken[0]?.socket).toBe(lost?.socket);
  });

  it("those on their way to one that died go to another, those that it had do not", async () => {
    const [first] = workers as [FakeWorker, FakeWorker];
    (workers[1] as FakeWorker).isTaking = false;
    for (let times = 0; times < 2; times += 1) await accept();
    handOver.received(first.taken[0]?.id ?? 0);
    (workers[1] as FakeWorker).isTaking = true;
    first.isTaking = false;
    handOver.forget(first);
    await expect.poll(counts).toEqual([2, 1]);
    expect((workers[1] as FakeWorker).taken[0]?.socket).toBe(first.taken[1]?.socket);
    expect(handOver.openOf(first)).toBe(0);
    // Our copies: the dead worker's, which is its own, and the one that is now on its way to the other.
    expect(first.taken.map(({ socket }) => socket.destroyed)).toEqual([true, false]);
  });
});

describe("a connection that a worker has", () => {
  const held = async (): Promise<{ worker: FakeWorker; client: Socket; ending: Promise<string> }> => {
    const [worker] = workers as [FakeWorker, FakeWorker];
    (workers[1] as FakeWorker).isTaking = false;
    await accept();
    const client = clients.at(-1) as Socket;
    const ending = new Promise<string>((resolve) => {
      client.once("end", () => resolve("FIN"));
      client.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
    });
    client.resume();
    handOver.received(worker.taken[0]?.id ?? 0);
    return { worker, client, ending };
  };

  it("is reset when that worker is killed: FIN would look like a proper end", async () => {
    const { worker, ending } = await held();
    handOver.forget(worker, true);
    expect(await ending).toBe("ECONNRESET");
  });

  it("is let go when that worker ends by itself, or ends the connection", async () => {
    const { worker, ending } = await held();
    handOver.closed([worker.taken[0]?.id ?? 0]);
    expect(await ending).toBe("FIN");
    expect(worker.taken[0]?.socket.destroyed).toBe(true);
  });

  it("has a copy here up to a bound", async () => {
    expect(MAX_KEPT_CONNECTIONS).toBe(4_096);
  });
});

describe("an address", () => {
  it("has so many connections of one listener over all workers, and no more", async () => {
    for (let times = 0; times < 4; times += 1) await accept();
    expect((await accept()).destroyed).toBe(true);
    expect([refused, ...counts()]).toEqual([1, 2, 2]);
    expect((await accept("ingress.http")).destroyed).toBe(false);
    handOver.closed([1]);
    expect((await accept()).destroyed).toBe(false);
    expect(refused).toBe(1);
  });
});

describe("waiting for a worker", () => {
  it("connections are kept until one serves, up to a bound", async () => {
    for (const worker of workers) worker.isTaking = false;
    const socket = await accept();
    (workers[1] as FakeWorker).isTaking = true;
    handOver.resume();
    expect((workers[1] as FakeWorker).taken.map((taken) => taken.socket)).toEqual([socket]);
    expect(MAX_WAITING_CONNECTIONS).toBe(1_024);
  });

  describe("too long", () => {
    const maxWaitMs = fixedBound("src/app/runtime/connection-dispatcher.ts", "MAX_WAIT_FOR_WORKER_MS");

    beforeEach(() => {
      for (const worker of workers) worker.isTaking = false;
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    });
    afterEach(() => {
      vi.useRealTimers();
    });

    /** What the client of a connection to the listener `name`, which has sent `sent`, gets after `afterMs`. */
    async function answerOf(name: string, sent: string, afterMs: number): Promise<Buffer> {
      const socket = await accept(name);
      const client = clients.at(-1) as Socket;
      client.write(sent);
      const got: Buffer[] = [];
      client.on("data", (bytes: Buffer) => got.push(bytes));
      const ended = once(client, "end");
      vi.advanceTimersByTime(afterMs - 1);
      expect(socket.writableEnded).toBe(false);
      vi.advanceTimersByTime(1);
      await ended;
      return Buffer.concat(got);
    }

    it("is answered with 503 over plain HTTP", async () => {
      const answer = String(await answerOf("ingress.http", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", maxWaitMs));
      expect(answer).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n(?:.+\r\n)*Retry-After: 1\r\n/);
      expect(answer).toContain("no worker could take the connection in time");
    });

    it("is answered with the alert internal_error over TLS", async () => {
      const client = tlsConnect({ socket: await unread("ingress.https"), rejectUnauthorized: false });
      const failed = once(client, "error") as Promise<[NodeJS.ErrnoException]>;
      vi.advanceTimersByTime(maxWaitMs);
      expect((await failed)[0].code).toBe("ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR");
    });

    it("gives back its place among its address's, and is given to no worker", async () => {
      for (let times = 0; times < 4; times += 1) await accept();
      vi.advanceTimersByTime(maxWaitMs);
      for (const client of clients) client.resume();
      await Promise.all(clients.map((client) => once(client, "close")));
      await expect.poll(async () => (await accept()).destroyed).toBe(false);
      (workers[0] as FakeWorker).isTaking = true;
      handOver.resume();
      await expect.poll(counts).toEqual([1, 0]);
    });

    it("is over for one that a worker took", async () => {
      const socket = await accept();
      (workers[0] as FakeWorker).isTaking = true;
      handOver.resume();
      vi.advanceTimersByTime(maxWaitMs);
      expect([socket.writableEnded, ...counts()]).toEqual([false, 1, 0]);
    });
  });
});
