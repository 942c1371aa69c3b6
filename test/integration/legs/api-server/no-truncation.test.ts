import { createCipheriv, createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../../packages/client/src/net/self-signed.ts";
import { createFakeNode, type FakeNode } from "../../../../packages/lab/src/fake-node/fake-node.ts";
import { startGatewayHarness } from "../../../support/gateway-harness.ts";
import { type ClientBehaviour, type PacedResult, runPacedCommand } from "../../../support/paced-command.ts";
import { startTestGateway } from "../../../support/test-gateway.ts";

/**
 * A client that reads slower than a command writes gets every byte and the status (kubernetes/kubernetes#142376). With
 * SLUICE_SOAK=1 the sizes are those of the report there, and the table of losses is printed; docs/evidence/no-truncation.md has one.
 */
const MIB = 1024 * 1024;
const scale =
  process.env.SLUICE_SOAK === "1"
    ? { outputBytes: 32 * MIB, bytesPerSecond: MIB, runs: 80, atOnce: 40, timeoutMs: 600_000 }
    : { outputBytes: 4 * MIB, bytesPerSecond: 4 * MIB, runs: 18, atOnce: 18, timeoutMs: 60_000 };
const EXIT_CODE = 7;

interface Cell {
  readonly path: string;
  readonly transport: "websocket" | "spdy";
  readonly pod: "web-spdy" | "web-ws";
  readonly behaviour: ClientBehaviour;
}

const cells: readonly Cell[] = (["pings", "sends input", "silent"] as const).flatMap((behaviour): Cell[] => [
  { path: "WebSocket v5, translated to SPDY v4", transport: "websocket", pod: "web-spdy", behaviour },
  { path: "WebSocket v5, passed through", transport: "websocket", pod: "web-ws", behaviour },
  { path: "SPDY v4, passed through", transport: "spdy", pod: "web-spdy", behaviour },
]);

const folder = mkdtempSync(path.join(tmpdir(), "sluice-no-truncation-"));
const outputFile = path.join(folder, "output");
let expected: PacedResult;

beforeAll(() => {
  // AES-CTR of zeros: looks random, is the same every time, and no part of it equals another.
  const cipher = createCipheriv("aes-128-ctr", Buffer.alloc(16, "seed"), Buffer.alloc(16));
  const output = cipher.update(Buffer.alloc(scale.outputBytes));
  writeFileSync(outputFile, output);
  const sha256 = createHash("sha256").update(output).digest("hex");
  expected = { bytes: scale.outputBytes, sha256, exitCode: EXIT_CODE, ending: "" };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(["https", "http"] as const)("over %s", (scheme) => {
  it(
    `${scale.runs} slow readers lose nothing`,
    async () => {
      const bed = await startBed(scheme);
      try {
        const results: { cell: Cell; result: PacedResult }[] = [];
        for (let first = 0; first < scale.runs; first += scale.atOnce) {
          const batch = Array.from(
            { length: Math.min(scale.atOnce, scale.runs - first) },
            async (_, index) => {
              const cell = cells[(first + index) % cells.length] as Cell;
              const result = await runPacedCommand({
                ...cell,
                ...bed.routeTo(cell.pod),
                command: ["sh", "-c", `head -c ${scale.outputBytes} ${outputFile}; exit ${EXIT_CODE}`],
                bytesPerSecond: scale.bytesPerSecond,
              });
              results.push({ cell, result });
            },
          );
          await Promise.all(batch);
        }
        if (process.env.SLUICE_SOAK === "1") process.stdout.write(tableOf(scheme, results));
        expect(results.filter(({ result }) => isLoss(result))).toEqual([]);
        const translated = results.filter(({ cell }) => cell.path.includes("translated")).length;
        await expect.poll(() => bed.countTranslated()).toBe(translated);
        await expect.poll(() => bed.nodes.map((node) => node.sessionCount)).toEqual([0, 0]);
      } finally {
        await bed.close();
      }
    },
    scale.timeoutMs,
  );
});

interface Bed {
  readonly nodes: readonly FakeNode[];
  routeTo(pod: Cell["pod"]): { gatewayUrl: string; token: string; pod: string };
  countTranslated(): Promise<number>;
  close(): Promise<void>;
}

/** A gateway with one node that speaks SPDY and one that speaks WebSocket; https on both legs, or http. */
function startBed(scheme: "https" | "http"): Promise<Bed> {
  return scheme === "https" ? startTlsBed() : startPlainBed();
}

async function startNodes(tls?: { certPem: string; keyPem: string }): Promise<[FakeNode, FakeNode]> {
  const containers = [{ name: "main" }];
  const podNamed = (name: string) => ({
    namespace: "default",
    name,
    uid: "u1",
    containers,
    ports: new Map(),
  });
  const startOne = (name: string, declaresWebSockets: boolean, podName: string) =>
    createFakeNode({
      name,
      declaresWebSockets,
      pods: [podNamed(podName), podNamed("web")],
      ...(tls && { tls }),
    });
  return [await startOne("node-spdy", false, "web-spdy"), await startOne("node-ws", true, "web-ws")];
}

async function startTlsBed(): Promise<Bed> {
  const certificate = await createSelfSignedCertificate();
  const nodes = await startNodes(certificate);
  const gateway = await startTestGateway({
    nodes: nodes.map(({ name, port, declaredFeatures }) => ({ name, port, declaredFeatures })),
    pods: [
      { name: "web-spdy", nodeName: "node-spdy", container: "main" },
      { name: "web-ws", nodeName: "node-ws", container: "main" },
    ],
    kubeletAuthority: certificate.certPem,
  });
  return {
    nodes,
    routeTo: (pod) => ({ gatewayUrl: gateway.apiServerUrl, token: gateway.token, pod }),
    async countTranslated() {
      return (await gateway.readMetrics()).get('apiserver_stream_translator_requests_total{code="200"}') ?? 0;
    },
    async close() {
      await gateway.stop();
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}

async function startPlainBed(): Promise<Bed> {
  const nodes = await startNodes();
  const [spdy, ws] = await Promise.all(
    nodes.map(({ port, declaredFeatures }) => startGatewayHarness({ kubeletPort: port, declaredFeatures })),
  );
  if (spdy === undefined || ws === undefined) throw new Error("two nodes have two gateways");
  return {
    nodes,
    routeTo: (pod) => ({
      gatewayUrl: `http://${(pod === "web-ws" ? ws : spdy).authority}`,
      token: "",
      pod: "web",
    }),
    async countTranslated() {
      const [line = ""] = await spdy.metric('apiserver_stream_translator_requests_total{code="200"}');
      return Number(line.split(" ")[1]);
    },
    async close() {
      await Promise.all([spdy.close(), ws.close()]);
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}

function isLoss({ bytes, sha256, exitCode }: PacedResult): boolean {
  return bytes !== expected.bytes || sha256 !== expected.sha256 || exitCode !== expected.exitCode;
}

function tableOf(scheme: string, results: readonly { cell: Cell; result: PacedResult }[]): string {
  const rows = cells.map((cell) => {
    const runs = results.filter((one) => one.cell === cell);
    const losses = runs.filter(({ result }) => isLoss(result)).length;
    return `| ${scheme} | ${cell.path} | ${cell.behaviour} | ${losses} of ${runs.length} |`;
  });
  const losses = results.filter(({ result }) => isLoss(result)).length;
  const head = `| legs | path | client | losses |\n|---|---|---|---|`;
  return `\n${head}\n${rows.join("\n")}\n| ${scheme} | all | all | ${losses} of ${results.length} |\n`;
}
