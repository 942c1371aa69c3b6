import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type ConnectionOptions, connect, createServer, DEFAULT_CIPHERS } from "node:tls";
import { describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../src/fake-node/index.ts";
import { secureContextOf, tlsOptionsOf } from "../../../src/listeners/serving-tls.ts";

async function cipherWith(options: ConnectionOptions): Promise<string> {
  const { certPem: cert, keyPem: key } = await createSelfSignedCertificate();
  const server = createServer(tlsOptionsOf({ cert, key, clientAuthorities: [] }, 1_000), (socket) =>
    socket.end(),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = connect({ port, host: "127.0.0.1", ca: cert, servername: "localhost", ...options });
  try {
    await once(client, "secureConnect");
    return client.getCipher().name;
  } finally {
    client.destroy();
    server.close();
  }
}

describe("the cipher of a listener", () => {
  it.each([
    ["AES-128 for a client that takes any", {}, "TLS_AES_128_GCM_SHA256"],
    ["AES-256 for one that takes no other", { ciphers: "TLS_AES_256_GCM_SHA384" }, "TLS_AES_256_GCM_SHA384"],
    ["AES-128 in TLS 1.2, too", { maxVersion: "TLSv1.2" }, "ECDHE-ECDSA-AES128-GCM-SHA256"],
  ] as const)("is %s", async (_, options, cipher) => {
    expect(await cipherWith(options)).toBe(cipher);
  });

  it("is one of Node's own, of which none is added or lost", () => {
    const { ciphers = "" } = secureContextOf({ cert: "", key: "", clientAuthorities: [] });
    expect(ciphers.split(":").toSorted()).toEqual(DEFAULT_CIPHERS.split(":").toSorted());
  });
});
