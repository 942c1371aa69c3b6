import { afterEach, expect, it } from "vitest";
import { SeparateForwards } from "../../../../src/sessions/carriers/forwards/separate-forwards.ts";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { ScriptedTunnelNode } from "../../../support/scripted-tunnel-node.ts";
import { TunnelClient } from "../../../support/tunnel-client.ts";
import { websocketOnly } from "../../../support/websocket-only.ts";

let harness: GatewayHarness | undefined;
let node: ScriptedTunnelNode | undefined;
let client: TunnelClient | undefined;

afterEach(async () => {
  client?.socket.terminate();
  await harness?.close();
  await node?.close();
});

/** One forwarded connection at a node of which the test plays the kubelet. */
async function forwarded(headers: Readonly<Record<string, string>>) {
  node = new ScriptedTunnelNode({});
  harness = await startGatewayHarness({
    kubeletPort: await node.listen(),
    streaming: websocketOnly,
    separateForwards: SeparateForwards,
  });
  client = await TunnelClient.open(harness.authority, { speaksSpdy: true, headers });
  const error = client.openStream("error", 0);
  error.stream.finish();
  const data = client.openStream("data", 0);
  data.stream.write(Buffer.from("here"));
  const session = () => node?.sessions.find(({ streams }) => streams.has("data0"));
  await expect.poll(() => session()?.received.get("data0")?.toString()).toBe("here");
  const atNode = (name: string) => session()?.streams.get(name);
  return { error, data, nodeError: atNode("error0"), nodeData: atNode("data0"), at: node };
}

// A real kubelet with containerd: the data stream's end, and then why, in a message of its own. kubectl resets the
// data stream at its end, and does not close the local connection before the end of the error stream.
it.each([
  ["kubectl/v1.37.2", ""],
  ["sluice", "connection refused"],
])("the error stream ends for %s, which resets the data stream at its end", async (agent, text) => {
  const { error, data, nodeError, nodeData, at } = await forwarded({ "User-Agent": agent });
  nodeData?.finish();
  expect(await data.ended).toBe("finished");
  const { length } = at.messages;
  data.stream.reset();
  await expect.poll(() => at.messages.length).toBeGreaterThan(length);
  nodeError?.write(Buffer.from("connection refused"));
  nodeError?.finish();
  expect(await error.ended).toBe("finished");
  expect(error.text().toString()).toBe(text);
});

it("the error stream ends for a client that resets the data stream before its end", async () => {
  const { error, data } = await forwarded({});
  data.stream.reset();
  expect(await error.ended).toBe("finished");
});
