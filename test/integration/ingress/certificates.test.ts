import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  createSelfSignedCertificate,
  type SelfSignedCertificate,
} from "../../../packages/client/src/net/self-signed.ts";
import { backend, FrontDoor, ingressObject } from "../../support/front-door.ts";
import { clientHello } from "../../support/tls-records.ts";

/** The type of TLS's record. */
const KINDS = ["rsa", "ec"] as const;
type Kind = (typeof KINDS)[number];

const certificates = new Map<string, SelfSignedCertificate>();
const folder = mkdtempSync(path.join(tmpdir(), "sluice-certificates-"));
let doors: Record<Kind, FrontDoor>;

/** One host for each set of Secrets; the subject of each certificate tells whose it is and of which kind. */
const HOSTS: Record<string, readonly Kind[]> = {
  "rsa.example.com": ["rsa"],
  "ec.example.com": ["ec"],
  "both.example.com": ["rsa", "ec"],
};

beforeAll(async () => {
  const subjects = [
    ...KINDS.map((kind) => ["default", kind] as const),
    ...Object.entries(HOSTS).flatMap(([host, kinds]) => kinds.map((kind) => [host, kind] as const)),
  ];
  for (const [host, kind] of subjects) {
    certificates.set(`${host} ${kind}`, await createSelfSignedCertificate([host], `${host} ${kind}`, kind));
  }
  const [rsa, ec] = await Promise.all(KINDS.map(doorWithDefault));
  doors = { rsa, ec } as Record<Kind, FrontDoor>;
});

afterAll(async () => {
  await Promise.all(Object.values(doors ?? {}).map((door) => door.stop()));
  rmSync(folder, { recursive: true, force: true });
});

async function doorWithDefault(kind: Kind): Promise<FrontDoor> {
  const { certPem, keyPem } = certificates.get(`default ${kind}`) as SelfSignedCertificate;
  const [certFile, keyFile] = ["crt", "key"].map((end) => path.join(folder, `${kind}.${end}`)) as [
    string,
    string,
  ];
  writeFileSync(certFile, certPem);
  writeFileSync(keyFile, keyPem);
  const secrets = Object.entries(HOSTS).flatMap(([host, kinds]) => kinds.map((each) => secretOf(host, each)));
  const tls = Object.entries(HOSTS).flatMap(([host, kinds]) =>
    kinds.map((each) => ({ hosts: [host], secretName: `${host}.${each}` })),
  );
  return await FrontDoor.start([...secrets, ingressObject("all", { tls, defaultBackend: backend("app") })], {
    defaultCertificate: { certFile, keyFile },
  });
}

function secretOf(host: string, kind: Kind, namespace = "default"): object {
  const { certPem, keyPem } = certificates.get(`${host} ${kind}`) as SelfSignedCertificate;
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: `${host}.${kind}`, namespace },
    type: "kubernetes.io/tls",
    data: { "tls.crt": base64(certPem), "tls.key": base64(keyPem) },
  };
}

/** The subject that a client is shown, or the word that OpenSSL has for why there is none. */
async function shown(port: number, options: ConnectionOptions): Promise<string> {
  const socket = connectTls({ port, rejectUnauthorized: false, ...options });
  try {
    await once(socket, "secureConnect");
    return String(socket.getPeerX509Certificate()?.subject).replace("CN=", "");
  } catch (error) {
    return String((error as { reason?: string; code?: string }).reason ?? error);
  } finally {
    socket.destroy();
  }
}

const CLIENTS: Record<string, { knows: readonly Kind[]; options: ConnectionOptions }> = {
  "TLS 1.3": { knows: ["ec", "rsa"], options: { minVersion: "TLSv1.3" } },
  "TLS 1.3, RSA alone": {
    knows: ["rsa"],
    options: { minVersion: "TLSv1.3", sigalgs: "rsa_pss_rsae_sha256" },
  },
  "TLS 1.3, ECDSA alone": {
    knows: ["ec"],
    options: { minVersion: "TLSv1.3", sigalgs: "ecdsa_secp256r1_sha256" },
  },
  // The suites of ECDSA come first.
  "TLS 1.2": { knows: ["ec", "rsa"], options: { maxVersion: "TLSv1.2" } },
  "TLS 1.2, RSA alone": { knows: ["rsa"], options: { maxVersion: "TLSv1.2", sigalgs: "rsa_pkcs1_sha256" } },
  "TLS 1.2, ECDSA alone": {
    knows: ["ec"],
    options: { maxVersion: "TLSv1.2", sigalgs: "ecdsa_secp256r1_sha256" },
  },
  "TLS 1.2, suites of RSA": {
    knows: ["rsa"],
    options: { maxVersion: "TLSv1.2", ciphers: "ECDHE-RSA-AES128-GCM-SHA256" },
  },
  "TLS 1.2, suites of ECDSA": {
    knows: ["ec"],
    options: { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" },
  },
};

describe.each(KINDS)("beside a default certificate of kind %s", (fallback) => {
  describe.each(Object.entries(CLIENTS))("a client of %s", (_name, { knows, options }) => {
    it.each(Object.entries(HOSTS))("gets the certificate of %s", async (servername, kinds) => {
      const common = knows.find((kind) => kinds.includes(kind));
      const expected =
        common === undefined ? expect.stringContaining("handshake failure") : `${servername} ${common}`;
      expect(await shown(doors[fallback].httpsPort, { ...options, servername })).toEqual(expected);
    });

    it.each([
      ["another name", "other.example.com"],
      ["no name", ""],
    ])("gets the default for %s", async (_what, servername) => {
      const expected = knows.includes(fallback)
        ? `default ${fallback}`
        : expect.stringContaining("handshake failure");
      expect(await shown(doors[fallback].httpsPort, { ...options, servername })).toEqual(expected);
    });
  });
});

describe("certificates of one host", () => {
  it("of another kind are taken from the namespace that named it first, and from no other", async () => {
    const secrets = [secretOf("both.example.com", "rsa"), secretOf("both.example.com", "ec", "other")];
    const ingressOf = (name: string, namespace: string, kind: Kind, year: number) =>
      ingressObject(
        name,
        {
          tls: [{ hosts: ["both.example.com"], secretName: `both.example.com.${kind}` }],
          defaultBackend: backend("app"),
        },
        { namespace, creationTimestamp: `${year}-01-01T00:00:00Z` },
      );
    const ingresses = [ingressOf("first", "default", "rsa", 2020), ingressOf("second", "other", "ec", 2021)];
    const door = await FrontDoor.start([...secrets, ...ingresses]);
    try {
      await door.serves(2);
      const servername = "both.example.com";
      expect(await shown(door.httpsPort, { servername })).toBe("both.example.com rsa");
      const ecdsa = { servername, sigalgs: "ecdsa_secp256r1_sha256" };
      expect(await shown(door.httpsPort, ecdsa)).toContain("handshake failure");
      door.write([
        ...secrets,
        secretOf("both.example.com", "ec"),
        ...ingresses,
        ingressOf("third", "default", "ec", 2022),
      ]);
      await expect.poll(() => shown(door.httpsPort, ecdsa)).toBe("both.example.com ec");
    } finally {
      await door.stop();
    }
  });
});

describe("the listener", () => {
  it("takes a ClientHello in single bytes", async () => {
    const bytes = new SingleBytes(doors.rsa.httpsPort);
    const socket = connectTls({ socket: bytes, servername: "ec.example.com", rejectUnauthorized: false });
    await once(socket, "secureConnect");
    expect(socket.getPeerX509Certificate()?.subject).toBe("CN=ec.example.com ec");
    socket.destroy();
  });

  it("tells plain HTTP that this is an HTTPS server, and serves on", async () => {
    const socket = connect(doors.rsa.httpsPort, "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nHost: rsa.example.com\r\n\r\n");
    const received: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => received.push(chunk));
    await once(socket, "close");
    expect(Buffer.concat(received).toString()).toBe(
      "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
    );
    expect(await shown(doors.rsa.httpsPort, { servername: "rsa.example.com" })).toBe("rsa.example.com rsa");
  });

  it("lets go of clients that do not go on", async () => {
    const door = await FrontDoor.start([], {}, { timeouts: { handshake: "200ms" } });
    try {
      const socket = connect(door.httpsPort, "127.0.0.1");
      socket.write(Buffer.from([22, 3, 1]));
      // This client gets a ServerHello and never answers it.
      const greeted = connect(door.httpsPort, "127.0.0.1").resume();
      greeted.write(clientHello());
      await Promise.all([once(socket, "close"), once(greeted, "close")]);
    } finally {
      await door.stop();
    }
  });

  it.each([
    [1_000, "ec.example.com ec"],
    [17_000, "default ec"],
  ])("serves a ClientHello with its name behind %d bytes as %s: its default to one of more than the bound", async (bytes, subject) => {
    const socket = connect(doors.ec.httpsPort, "127.0.0.1");
    socket.write(helloWithNameBehind(bytes, "ec.example.com"));
    let received = "";
    socket.setEncoding("latin1").on("data", (text: string) => {
      received += text;
    });
    await expect.poll(() => received).toContain(subject);
    socket.destroy();
  });

  it.each([
    ["a name", "both.example.com"],
    ["no name", ""],
  ])("resumes sessions of clients with %s", async (_what, servername) => {
    const options = { port: doors.rsa.httpsPort, servername, rejectUnauthorized: false };
    const first = connectTls(options);
    const [session] = (await once(first, "session")) as [Buffer];
    first.destroy();
    const second = connectTls({ ...options, session });
    await once(second, "secureConnect");
    expect(second.isSessionReused()).toBe(true);
    second.destroy();
  });
});

describe("openssl s_client", () => {
  it.each([
    [["-servername", "both.example.com", "-sigalgs", "RSA-PSS+SHA256"], "both.example.com rsa"],
    [["-servername", "both.example.com", "-sigalgs", "ECDSA+SHA256"], "both.example.com ec"],
    [["-servername", "rsa.example.com", "-tls1_2"], "rsa.example.com rsa"],
    [["-servername", "rsa.example.com", "-tls1_3"], "rsa.example.com rsa"],
    [["-noservername", "-tls1_3"], "default ec"],
  ])("%j gets %s", async (options, subject) => {
    const client = spawn("openssl", ["s_client", "-connect", `127.0.0.1:${doors.ec.httpsPort}`, ...options]);
    client.stdin.end();
    client.stdout.setEncoding("utf8");
    let printed = "";
    client.stdout.on("data", (text: string) => {
      printed += text;
    });
    await once(client, "close");
    expect(printed).toContain(`subject=CN = ${subject}\n`);
  });
});

describe("the default certificate", () => {
  it("is made where none is given: RSA, which every client can verify", async () => {
    const door = await FrontDoor.start([], { defaultCertificate: undefined });
    try {
      const options = { maxVersion: "TLSv1.2", sigalgs: "rsa_pkcs1_sha256" } as const;
      expect(await shown(door.httpsPort, options)).toBe("ingress.sluice.dev");
    } finally {
      await door.stop();
    }
  });

  it("is read again at SIGHUP and when its files change; what is wrong changes nothing", async () => {
    const door = await doorWithDefault("rsa");
    const write = (name: string, { certPem, keyPem }: SelfSignedCertificate) => {
      writeFileSync(path.join(folder, "rsa.crt"), certPem);
      writeFileSync(path.join(folder, "rsa.key"), name === "half" ? "half a key" : keyPem);
    };
    const other = await createSelfSignedCertificate([], "another", "ec");
    try {
      for (const servername of ["", "other.example.com"]) {
        expect(await shown(door.httpsPort, { servername })).toBe("default rsa");
      }
      const open = connectTls({ port: door.httpsPort, rejectUnauthorized: false });
      await once(open, "secureConnect");
      write("half", other);
      await door.reload();
      expect(door.logged.join("")).toContain("the serving certificate could not be read again");
      expect(await shown(door.httpsPort, {})).toBe("default rsa");
      write("whole", other);
      await door.reload();
      for (const servername of ["", "other.example.com"]) {
        expect(await shown(door.httpsPort, { servername })).toBe("another");
      }
      open.write("GET / HTTP/1.1\r\nHost: other.example.com\r\nConnection: close\r\n\r\n");
      expect(String((await once(open, "data"))[0])).toMatch(/^HTTP\/1\.1 503 /);
      open.destroy();
      write("whole", certificates.get("default ec") as SelfSignedCertificate);
      await expect.poll(() => shown(door.httpsPort, {})).toBe("default ec");
    } finally {
      await door.stop();
    }
  });
});

/** A ClientHello of TLS 1.2, which sends certificates in clear: an unknown extension, then the name. */
function helloWithNameBehind(bytes: number, name: string): Buffer {
  const uint16 = (value: number): number[] => [value >> 8, value & 0xff];
  const vector = (content: readonly number[]): number[] => [...uint16(content.length), ...content];
  const extension = (type: number, content: readonly number[]): number[] => [
    ...uint16(type),
    ...vector(content),
  ];
  const extensions = [
    ...extension(0xfff0, new Array(bytes).fill(0)),
    ...extension(0, vector([0, ...vector([...Buffer.from(name)])])),
    ...extension(10, vector([0, 23])), // secp256r1
    ...extension(13, vector([4, 3])), // ecdsa_secp256r1_sha256
  ];
  const suites = [0xc0, 0x2b]; // ECDHE-ECDSA-AES128-GCM-SHA256
  const body = [3, 3, ...new Array(32).fill(7), 0, ...vector(suites), 1, 0, ...vector(extensions)];
  const message = Buffer.from([1, body.length >> 16, ...uint16(body.length & 0xffff), ...body]);
  const records: Buffer[] = [];
  for (let start = 0; start < message.byteLength; start += 16_384) {
    const fragment = message.subarray(start, start + 16_384);
    records.push(Buffer.from([22, 3, 1, ...uint16(fragment.byteLength)]), fragment);
  }
  return Buffer.concat(records);
}

/** A connection that sends each byte by itself. */
class SingleBytes extends Duplex {
  readonly #socket: Socket;

  constructor(port: number) {
    super();
    this.#socket = connect({ port, host: "127.0.0.1", noDelay: true });
    this.#socket.on("data", (chunk: Buffer) => this.push(chunk));
  }

  override _read(): void {}

  override async _write(chunk: Buffer, _encoding: string, done: () => void): Promise<void> {
    for (const byte of chunk) {
      await new Promise((resolve) => this.#socket.write(Buffer.from([byte]), resolve));
    }
    done();
  }

  override _destroy(_error: Error | null, done: () => void): void {
    this.#socket.destroy();
    done();
  }
}
