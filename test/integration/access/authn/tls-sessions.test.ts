import { once } from "node:events";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { type ConnectionOptions, connect } from "node:tls";
import { afterEach, beforeEach, expect, it } from "vitest";
import { AccessGateway } from "../../../support/access-gateway.ts";
import { type SignedCertificate, signedCertificate } from "../../../support/der-certificate.ts";
import { eventually } from "../../../support/eventually.ts";

const users = signedCertificate({ commonName: "users", isAuthority: true });
const jane = signedCertificate({ commonName: "jane" }, users);
const PODS = "/api/v1/namespaces/default/pods";

let gateway: AccessGateway;

beforeEach(async () => {
  gateway = await AccessGateway.start((folder) => {
    writeFileSync(path.join(folder, "users.crt"), users.cert);
    return { authentication: { clientCAFile: "users.crt" } };
  });
});
afterEach(() => gateway.stop());

interface Answer {
  /** 0 without an answer. */
  readonly status: number;
  readonly isReused: boolean;
  readonly session: Buffer | undefined;
}

/** Asks, ends its own side at once with close_notify, and reads to the end. */
async function ask(options: ConnectionOptions): Promise<Answer> {
  const [host, port] = gateway.authority.split(":");
  const socket = connect({ host, port: Number(port), rejectUnauthorized: false, ...options });
  let session: Buffer | undefined;
  socket.on("session", (bytes: Buffer) => {
    session = bytes;
  });
  let text = "";
  socket.setEncoding("latin1").on("data", (part: string) => {
    text += part;
  });
  socket.end(`GET ${PODS} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await once(socket, "secureConnect");
  const isReused = socket.isSessionReused();
  session ??= socket.getSession();
  await once(socket, "close");
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), isReused, session };
}

const certified = ({ cert, key }: SignedCertificate): ConnectionOptions => ({ cert, key });

it.each(["TLSv1.2", "TLSv1.3"] as const)("a session of %s outlives no authority", async (version) => {
  const only = { minVersion: version, maxVersion: version };
  const first = await ask({ ...certified(jane), ...only });
  expect(first.status).toBe(200);
  const resuming = { ...only, session: first.session };
  expect((await ask(resuming)).status).toBe(401);
  expect(await ask({ ...resuming, ...certified(jane) })).toMatchObject({ status: 200, isReused: false });
  const others = signedCertificate({ commonName: "others", isAuthority: true });
  writeFileSync(path.join(gateway.folder, "users.crt"), others.cert);
  await eventually("the other authority", async () => (await ask(certified(jane))).status === 401);
  expect(await ask({ ...resuming, ...certified(jane) })).toMatchObject({ status: 401, isReused: false });
  expect(await ask(resuming)).toMatchObject({ status: 401, isReused: false });
});

it.each([
  "jane\0.example",
  "\0jane",
  "jane\0",
])("a certificate with NUL names nobody: %j", async (commonName) => {
  expect((await ask(certified(signedCertificate({ commonName }, users)))).status).toBe(401);
});

it.each([
  ["10,000 names", { names: Array.from({ length: 10_000 }, (_, index) => `name-${index}.example`) }],
  ["a name of 60,000 bytes", { names: ["a".repeat(60_000)] }],
])("a certificate with %s is its own user's, or has no handshake", async (_, more) => {
  const large = signedCertificate({ commonName: "large", ...more }, users);
  // OpenSSL takes 100 KiB of certificates; TLS 1.3's client hears of it after its own Finished.
  const { status } = await ask(certified(large)).catch(() => ({ status: 0 }));
  expect([200, 0]).toContain(status);
  expect((await ask(certified(jane))).status).toBe(200);
});
