import { once } from "node:events";
import { Agent, request } from "node:https";
import type { TLSSocket } from "node:tls";
import { expect, it, onTestFinished } from "vitest";
import { listenAt } from "../../../src/net/listen.ts";
import { HELLO_PATH } from "../../../src/peers/peer-protocol.ts";
import { createPeerServer, replacePeerTls } from "../../../src/peers/peer-server.ts";
import { defaultLimits, defaultTimeouts } from "../../support/default-configuration.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

const NAME = "sluice-peer";

it("connections of replicas whose authority was taken away end, and those of others go on", async () => {
  const authorities = await Promise.all(["old", "new"].map((commonName) => issueCertificate({ commonName })));
  const [older, newer] = await Promise.all(
    authorities.map((authority) => issueCertificate({ commonName: NAME }, authority, { names: [NAME] })),
  );
  if (older === undefined || newer === undefined) throw new Error("no certificates");
  const bundle = authorities.map(({ cert }) => cert).join("\n");
  const tls = { cert: newer.cert, key: newer.key, clientAuthorities: [bundle] };
  const server = createPeerServer({
    tls,
    name: NAME,
    replica: "one",
    listSessions: () => [],
    gateway: { limits: defaultLimits, timeouts: defaultTimeouts, logger: { warn: () => {} } } as never,
  });
  const { port } = await listenAt(server, { address: "127.0.0.1", port: 0 });
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  /** The status of a request, and the connection that it is kept on. */
  const connectAs = async ({ cert, key }: { cert: string; key: string }) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: bundle, cert, key, servername: NAME });
    onTestFinished(() => agent.destroy());
    const sent = request({ host: "127.0.0.1", port, path: HELLO_PATH, agent }).end();
    const [answer] = await once(sent, "response");
    answer.resume();
    await once(answer, "end");
    expect(answer.statusCode).toBe(200);
    return sent.socket as TLSSocket;
  };
  const [ofOlder, ofNewer] = [await connectAs(older), await connectAs(newer)];
  replacePeerTls(server, tls);
  expect(await connectAs(older)).toBeDefined();
  const ended = once(ofOlder, "close");
  replacePeerTls(server, { ...tls, clientAuthorities: [authorities[1]?.cert ?? ""] });
  await ended;
  expect(ofNewer.destroyed).toBe(false);
  await expect(connectAs(older)).rejects.toThrow();
  expect(await connectAs(newer)).toBeDefined();
});
