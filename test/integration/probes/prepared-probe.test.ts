import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { probe } from "./probe.ts";

it("a probe whose request was made before names another address, version and port once it is told so", async () => {
  const asked: (string | undefined)[] = [];
  const server = createServer(({ headers }, response) => {
    asked.push(headers.host, headers["user-agent"]);
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const httpGet = { port: "web" };
  const containerPorts = [{ name: "web", containerPort: port }];
  const localhost = { host: "localhost", containerPorts };
  await probe({ httpGet }, { target: { containerPorts } });
  await probe({ httpGet }, { target: localhost });
  await probe({ httpGet }, { target: localhost, userAgentVersion: "1.99" });
  const moved = { host: "localhost", containerPorts: [{ name: "web", containerPort: 0 }] };
  const { error } = await probe({ httpGet }, { target: moved, userAgentVersion: "1.99" });
  server.close();
  expect(asked).toEqual([
    `127.0.0.1:${port}`,
    "kube-probe/1.36",
    `localhost:${port}`,
    "kube-probe/1.36",
    `localhost:${port}`,
    "kube-probe/1.99",
  ]);
  expect(error).toBe("invalid port number: 0");
});
