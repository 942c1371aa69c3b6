import { once } from "node:events";
import { existsSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import {
  createFakeNode,
  createSelfSignedCertificate,
  type FakeNode,
} from "../../../../src/fake-node/index.ts";
import { type GatewayProcess, startGatewayProcess } from "../../../support/gateway-process.ts";
import { untilStill } from "../../../support/still.ts";
import { parseMetrics } from "../../../support/taken-path.ts";

const KIB = 1024;
const STALLED_SESSIONS = 100;
const WARM_UP_SESSIONS = 50;
/** What one stalled session may hold in the gateway, with TLS on both legs. docs/limits.md states it. */
const MAX_STALLED_SESSION_BYTES = 256 * KIB;
/** The same as the process' size shows it: with garbage, which is some 30 MiB however many sessions there are. */
const MAX_RESIDENT_BYTES_PER_SESSION = 1024 * KIB;
/** The grace period is 0 s here; what is queued has 2 s to leave, twice. */
const MAX_STOP_MS = 10_000;
const PIECE = Buffer.concat([Buffer.of(0), Buffer.alloc(64 * KIB)]);

/** The memory of a whole process can be read where there is a /proc only. */
describe.skipIf(!existsSync("/proc/self/status"))(
  "memory that stalled sessions hold",
  { timeout: 120_000 },
  () => {
    let node: FakeNode;
    let gateway: GatewayProcess;
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
      gateway = await startGatewayProcess({
        nodes: [{ name: "node", port: node.port }],
        pods: [{ name: "web", nodeName: "node", container: "main" }],
        kubeletAuthority: certificate.certPem,
      });
      // Code is compiled and heaps grow once; neither belongs to a session.
      await Promise.all(Array.from({ length: WARM_UP_SESSIONS }, warmUp));
    });
    afterEach(async () => {
      for (const socket of sockets.splice(0)) socket.terminate();
      await gateway?.stop();
      await node?.close();
    });

    function exec(command: readonly string[]): WebSocket {
      const query = command.map((word) => `command=${word}`).join("&");
      const url = `${gateway.apiServerUrl.replace("https", "wss")}/api/v1/namespaces/default/pods/web/exec`;
      const socket = new WebSocket(`${url}?stdin=true&stdout=true&${query}`, "v5.channel.k8s.io", {
        perMessageDeflate: false,
        rejectUnauthorized: false,
        headers: { Authorization: `Bearer ${gateway.token}` },
      });
      socket.on("error", () => {});
      sockets.push(socket);
      return socket;
    }

    async function warmUp(): Promise<void> {
      const socket = exec(["head", "-c", "1000000", "/dev/zero"]);
      await new Promise((resolve) => socket.once("close", resolve));
    }

    async function carriedBytes(direction: "downstream" | "upstream"): Promise<number> {
      const samples = parseMetrics(await gateway.admin("/metrics"));
      return samples.get(`sluice_streaming_bytes_total{subresource="exec",direction="${direction}"}`) ?? 0;
    }

    /** Stalls many sessions and asserts what each costs, once nothing moves any more. */
    async function expectBoundedCost(
      stall: (socket: WebSocket) => void,
      command: readonly string[],
      direction: "downstream" | "upstream",
    ): Promise<void> {
      const before = {
        held: await gateway.heldBytes(),
        resident: gateway.residentBytes(),
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
      const resident = (gateway.residentBytes() - before.resident) / STALLED_SESSIONS;
      const held = ((await gateway.heldBytes()) - before.held) / STALLED_SESSIONS;
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
