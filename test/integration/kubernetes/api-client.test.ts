import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { ApiClient } from "../../../src/kubernetes/api-client.ts";

it.each(["null", "1", '"text"', "{", ""])("an answer that is %j and no object is malformed", async (body) => {
  const server = createServer((_, response) => response.end(body));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const kubeconfig = { server: url, tls: {}, headers: async () => [] };
  const client = new ApiClient({ kubeconfig: kubeconfig as never, dialTimeoutMs: 5_000 });
  onTestFinished(() => {
    client.close();
    server.close();
  });
  await expect(client.json({ path: "/api/v1/pods" })).rejects.toMatchObject({
    name: "MalformedAnswerError",
    message: "the API server's answer is not a JSON object",
  });
});
