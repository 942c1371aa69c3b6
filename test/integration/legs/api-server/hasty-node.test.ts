import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { type HastyNode, startHastyNode } from "../../../support/hasty-node.ts";
import { runPacedCommand } from "../../../support/paced-command.ts";

const MIB = 1024 * 1024;
const OUTPUT_BYTES = 6 * MIB;
/** Clients that send input are fewer: a busy process reads its nodes too late for them. */
const RUNS = { pings: 6, "sends input": 2 } as const;

/** kubernetes/kubernetes#142376: what a client sends meanwhile must not reach a socket that the node has closed. */
describe("a node that closes its socket right behind its output", () => {
  let node: HastyNode;
  let speaksWebSocket: GatewayHarness;
  let speaksSpdy: GatewayHarness;

  beforeAll(async () => {
    node = await startHastyNode(OUTPUT_BYTES);
    const declaredFeatures = ["ExtendWebSocketsToKubelet"];
    speaksWebSocket = await startGatewayHarness({ kubeletPort: node.port, declaredFeatures });
    speaksSpdy = await startGatewayHarness({ kubeletPort: node.port });
  });
  afterAll(async () => {
    await speaksWebSocket?.close();
    await speaksSpdy?.close();
    await node?.close();
  });

  const paths = [
    ["WebSocket v5, passed through", "websocket", () => speaksWebSocket],
    ["WebSocket v5, translated", "websocket", () => speaksSpdy],
    ["SPDY v4, passed through", "spdy", () => speaksSpdy],
  ] as const;
  const cases = paths.flatMap((path) =>
    (["pings", "sends input"] as const).map((does) => [does, ...path] as const),
  );

  it.each(
    cases,
  )("loses nothing of it where a slow client %s: %s", async (behaviour, _name, transport, gateway) => {
    const command = {
      gatewayUrl: `http://${gateway().authority}`,
      token: "",
      pod: "web",
      command: ["any"],
      transport,
      behaviour,
      bytesPerSecond: 4 * MIB,
    } as const;
    const results = await Promise.all(
      Array.from({ length: RUNS[behaviour] }, () => runPacedCommand(command)),
    );
    const { sha256 } = node;
    for (const result of results) expect(result).toMatchObject({ bytes: OUTPUT_BYTES, sha256, exitCode: 0 });
  });
});
