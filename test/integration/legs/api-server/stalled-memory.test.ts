import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { createSelfSignedCertificate } from "../../../../packages/client/src/net/self-signed.ts";
import { createFakeNode, type FakeNode } from "../../../../packages/lab/src/fake-node/fake-node.ts";
import { GatewayFiles, selfSignedPair, TESTER_TOKEN, webOn } from "../../../support/gateway-files.ts";
import { type ServedGateway, serveGateway } from "../../../support/served-gateway.ts";
import { untilStill } from "../../../support/still.ts";
import { readMetricsOf } from "../../../support/taken-path.ts";

/** Lets heldBytes ask for a collection. */
const COLLECT_ON_SIGNAL = "data:text/javascript,process.on('SIGURG',()=>gc())";
/** Buffers are freed by the collection after the one that finds them unused, and a signal may be late. */
const COLLECTIONS = 8;
const KIB = 1024;
const STALLED_SESSIONS = 100;
const WARM_UP_SESSIONS = 50;
/** What one stalled session may hold in the gateway, with TLS on both legs. docs/limits.md states it. */
const MAX_STALLED_SESSION_BYTES = 256 * KIB;
/** More sessions than the spare memories that MAX_SPARE_MEMORIES allows: two for each. */
const POOLED_SESSIONS = 520;
const POOLED_BYTES = 500_000;
const SMALL_HEAP_MIB = 256;
/** The same as the process' size shows it: with garbage, which is some 30 MiB however many sessions there are. */
const MAX_RESIDENT_BYTES_PER_SESSION = 1024 * KIB;
/** The grace period is 0 s here; what is queued has 2 s to leave, twice. */
const MAX_STOP_MS = 10_000;
const PIECE = Buffer.concat([Buffer.of(0), Buffer.alloc(64 * KIB)]);

/** The memory of a whole process can be read where there is a /proc only. */
describe.skipIf(!existsSync("/proc/self/status"))(
  "memory that stalled sessions hold",
  { timeout: 240_000 },
  () => {
    let node: FakeNode;
    let files: GatewayFiles;
    let gateway: ServedGateway;
    const sockets: WebSocket[] = [];

    // A process of its own for each test: memory that one has freed would hide what the next one takes.
    beforeEach(async () => {
      const certificate = await createSelfSignedCertificate();
      const pod = {
        namespace: "default",
        name: "web",
        uid: "u1",
        containers: [{ name: "main" }],
        ports: new Map(),
      };
      node = await createFakeNode({
        name: "node",
        declaresWebSockets: false,
        pods: [pod],
        tls: certificate,
        limits: { maxStdinBufferBytes: 64 * KIB },
      });
      files = new GatewayFiles({
        ...webOn(node.port),
        kubeletAuthority: certificate.certPem,
        tls: await selfSignedPair("gateway"),
        timeouts: { shutdownGracePeriod: "0s", lingerIdle: "1s" },
      });
      gateway = await serveGateway(files.configurationFile, {
        nodeArguments: ["--expose-gc", "--import", COLLECT_ON_SIGNAL],
      });
      // Code is compiled and heaps grow once; neither belongs to a session.
      await Promise.all(Array.from({ length: WARM_UP_SESSIONS }, warmUp));
    });
    afterEach(async () => {
      for (const socket of sockets.splice(0)) socket.terminate();
      await gateway?.stop();
      await node?.close();
      files.remove();
    });

    function exec(command: readonly string[]): WebSocket {
      const query = command.map((word) => `command=${word}`).join("&");
      const url = `${gateway.ready.apiServerUrl.replace("https", "wss")}/api/v1/namespaces/default/pods/web/exec`;
      const socket = new WebSocket(`${url}?stdin=true&stdout=true&${query}`, "v5.channel.k8s.io", {
        perMessageDeflate: false,
        rejectUnauthorized: false,
        headers: { Authorization: `Bearer ${TESTER_TOKEN}` },
      });
      socket.on("error", () => {});
      sockets.push(socket);
      return socket;
    }

    async function warmUp(): Promise<void> {
      const socket = exec(["head", "-c", "1000000", "/dev/zero"]);
      await new Promise((resolve) => socket.once("close", resolve));
    }

    /** Memory of the process that is in RAM (VmRSS): garbage and what the allocator keeps for later included. */
    function residentBytes(): number {
      const status = readFileSync(`/proc/${gateway.child.pid}/status`, "utf8");
      return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * KIB;
    }

    /** What JavaScript and its buffers hold after a garbage collection. */
    async function heldBytes(): Promise<number> {
      let least = Number.POSITIVE_INFINITY;
      for (let collection = 0; collection < COLLECTIONS; collection++) {
        gateway.child.kill("SIGURG");
        const samples = await readMetricsOf(gateway.adminUrl);
        const heap = samples.get("nodejs_heap_size_used_bytes") ?? Number.NaN;
        const external = samples.get("nodejs_external_memory_bytes") ?? Number.NaN;
        least = Math.min(least, heap + external);
      }
      return least;
    }

    async function carriedBytes(direction: "downstream" | "upstream"): Promise<number> {
      const samples = await readMetricsOf(gateway.adminUrl);
      return samples.get(`sluice_streaming_bytes_total{subresource="exec",direction="${direction}"}`) ?? 0;
    }

    /** Stalls many sessions and asserts what each costs, once nothing moves any more. */
    async function expectBoundedCost(
      stall: (socket: WebSocket) => void,
      command: readonly string[],
      direction: "downstream" | "upstream",
    ): Promise<void> {
      const before = {
        held: await heldBytes(),
        resident: residentBytes(),
        carried: await carriedBytes(direction),
      };
      // One after the other: a flood of handshakes is another test's matter.
      for (let started = 0; started < STALLED_SESSIONS; started++) {
        const socket = exec(command);
        await once(socket, "open");
        stall(socket);
      }
      const read = () => carriedBytes(direction);
      const carried = await untilStill("the traffic", read, before.carried + STALLED_SESSIONS * PIECE.length);
      const resident = (residentBytes() - before.resident) / STALLED_SESSIONS;
      const held = ((await heldBytes()) - before.held) / STALLED_SESSIONS;
      const kib = (bytes: number) => `${Math.round(bytes / KIB)} KiB`;
      const moved = (carried - before.carried) / STALLED_SESSIONS;
      console.info(
        `${STALLED_SESSIONS} stalled ${direction}: ${kib(held)} held, ${kib(resident)} resident each, after ${kib(moved)}`,
      );
      expect(held).toBeLessThan(MAX_STALLED_SESSION_BYTES);
      expect(resident).toBeLessThan(MAX_RESIDENT_BYTES_PER_SESSION);
    }

    it(`downloads that nobody reads: at most ${MAX_STALLED_SESSION_BYTES / KIB} KiB each`, async () => {
      await expectBoundedCost((socket) => socket.pause(), ["cat", "/dev/zero"], "downstream");
    });

    it(`${POOLED_SESSIONS} downloads at once, in ${SMALL_HEAP_MIB} MiB of heap, are whole`, async () => {
      await gateway.stop();
      gateway = await serveGateway(files.configurationFile, {
        nodeArguments: [`--max-old-space-size=${SMALL_HEAP_MIB}`],
      });
      const downloads: WebSocket[] = [];
      for (let started = 0; started < POOLED_SESSIONS; started++) {
        const socket = exec(["head", "-c", String(POOLED_BYTES), "/dev/zero"]);
        await once(socket, "open");
        socket.pause();
        downloads.push(socket);
      }
      const received = await Promise.all(
        downloads.map(async (socket) => {
          let bytes = 0;
          let status = "";
          socket.on("message", (message: Buffer) => {
            if (message[0] === 1) bytes += message.length - 1;
            else if (message[0] === 3) status = JSON.parse(message.toString("utf8", 1)).status;
          });
          socket.resume();
          await once(socket, "close");
          return `${bytes} ${status}`;
        }),
      );
      expect(new Set(received)).toEqual(new Set([`${POOLED_BYTES} Success`]));
      expect(gateway.child.exitCode).toBeNull();
    });

    it(`uploads that nobody reads: at most ${MAX_STALLED_SESSION_BYTES / KIB} KiB each, and SIGTERM ends them`, async () => {
      const flood = (socket: WebSocket): void => {
        // Each piece waits for the one before it, so that the client holds only one.
        socket.send(PIECE, (error) => error ?? flood(socket));
      };
      await expectBoundedCost(flood, ["sleep", "1000"], "upstream");

      // Neither side reads or closes, which must not keep the process.
      const startedMs = performance.now();
      await gateway.stop();
      expect(performance.now() - startedMs).toBeLessThan(MAX_STOP_MS);
    });
  },
);
