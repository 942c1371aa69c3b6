import { expect, it } from "vitest";
import { runFakeNode } from "../../../packages/lab/src/fake-node/run-fake-node.ts";
import { POD, SpdyClient, spdyUpgrade, textOf } from "./upgrade.ts";

it("runs a node with servers in its pods, and leaves nothing listening", async () => {
  const { ports: _, ...pod } = POD;
  const node = await runFakeNode({ name: "node-ws", declaresWebSockets: true, pods: [pod] });
  expect(node.declaredFeatures).toEqual(["ExtendWebSocketsToKubelet"]);
  const { socket, head } = await spdyUpgrade(node, "/portForward/default/web", "portforward.k8s.io");
  const client = new SpdyClient(socket, head);
  client.open({ streamtype: "error", port: "80", requestid: "0" });
  const data = client.open({ streamtype: "data", port: "80", requestid: "0" });
  data.stream.write(Buffer.from("GET / HTTP/1.0\r\n\r\n"));
  await data.ended;
  expect(textOf(data)).toContain("Hello from pod web");
  await node.close();
  await client.closed;
  await expect(fetch(`http://${node.address}:${node.port}/`)).rejects.toThrow();
});
