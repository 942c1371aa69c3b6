import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type ConnectionOptions, connect, createServer, getCiphers } from "node:tls";
import { describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import {
  CIPHER_SUITES,
  cipherOptionsOf,
  type TlsSettings,
} from "../../../src/config/sections/tls-settings.ts";
import { tlsOptionsOf } from "../../../src/listeners/serving-tls.ts";

async function cipherWith(options: ConnectionOptions, settings: Partial<TlsSettings> = {}): Promise<string> {
  const { certPem: cert, keyPem: key } = await createSelfSignedCertificate();
  const server = createServer(
    tlsOptionsOf({ cert, key, clientAuthorities: [], ...settings }, 1_000),
    (socket) => socket.end(),
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

  it.each([
    "AES128-SHA",
    "AES256-GCM-SHA384",
    "DHE-RSA-AES128-GCM-SHA256",
  ])("is not %s, which has no forward secrecy, or is not of Go's", async (ciphers) => {
    await expect(cipherWith({ ciphers, maxVersion: "TLSv1.2" })).rejects.toThrow(/handshake failure/);
  });

  it("is what is configured, by Go's names", async () => {
    const settings = { cipherSuites: ["TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"] } as const;
    expect(await cipherWith({ maxVersion: "TLSv1.2" }, settings)).toBe("ECDHE-ECDSA-AES256-SHA");
    expect(await cipherWith({}, settings)).toBe("TLS_AES_128_GCM_SHA256");
    const newest = cipherWith({ maxVersion: "TLSv1.2" }, { minVersion: "VersionTLS13" });
    await expect(newest).rejects.toThrow(/protocol version/);
  });

  it("has a name of OpenSSL's for each of Go's", () => {
    const known = new Set(getCiphers().map((name) => name.toUpperCase()));
    const { ciphers } = cipherOptionsOf({ cipherSuites: CIPHER_SUITES });
    expect(ciphers.split(":").filter((name) => !known.has(name))).toEqual([]);
  });
});
