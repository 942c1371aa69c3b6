import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { createServer as createHttpsServer, type Server } from "node:https";
import { type AddressInfo, BlockList, connect, isIP, type Socket } from "node:net";
import path from "node:path";
import { connect as connectTls } from "node:tls";
import { canonicalAddress, ipv6Groups } from "@sluice/client/internal/config/address-list";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { AddressList } from "../../../packages/client/src/config/address-list.ts";
import { NodeAddresses } from "../../../src/legs/api-server/kubelets-component.ts";
import { EdgeRules, networkOf } from "../../../src/listeners/edge-rules.ts";
import { ReservedEndpoints } from "../../../src/net/address-rules.ts";
import { AccessGateway, EXEC_PATH } from "../../support/access-gateway.ts";
import { listenRaw } from "../../support/http/loopback.ts";
import { issueCertificate, type TestCertificate } from "../../support/test-certificates.ts";

const soon = (check: () => unknown) => vi.waitFor(check, { timeout: 30_000, interval: 20 });
const TOKEN = "edge-token";
const BEARER = { Authorization: `Bearer ${TOKEN}` };
const subprotocolToken = `base64url.bearer.authorization.k8s.io.${Buffer.from(TOKEN).toString("base64url")}`;

function withTokens(folder: string): Record<string, unknown> {
  writeFileSync(path.join(folder, "tokens.csv"), `${TOKEN},ann,1\n`);
  return { tokenAuthFile: "tokens.csv" };
}

describe("web pages", () => {
  let gateway: AccessGateway;
  let jane: TestCertificate;

  beforeAll(async () => {
    const users = await issueCertificate({ commonName: "users" });
    jane = await issueCertificate({ commonName: "jane" }, users, { usage: "client" });
    gateway = await AccessGateway.start((folder) => {
      writeFileSync(path.join(folder, "users.crt"), users.cert);
      return {
        authentication: { ...withTokens(folder), clientCAFile: "users.crt", anonymous: { enabled: true } },
        edge: { allowedOrigins: ["https://console.example.com"] },
      };
    });
  });
  afterAll(() => gateway.stop());

  const evil = { Origin: "https://evil.example.com" };
  const program = { Origin: "http://localhost" };
  const browser = { "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0" };
  const cookie = { Cookie: "a=b" };
  const protocols = ["v5.channel.k8s.io", subprotocolToken];
  const own = (): object => ({ Origin: `https://${gateway.authority}` });

  it.each<[string, string, () => object, boolean, string[]?]>([
    ["another", "nothing", () => evil, false],
    ["another", "a certificate", () => evil, true],
    ["another", "a certificate, and a subprotocol's token that the page chose", () => evil, true, protocols],
    ["another", "a cookie and a subprotocol's token", () => ({ ...evil, ...cookie }), false, protocols],
    ["another", "a cookie and a token that a proxy added", () => ({ ...evil, ...cookie, ...BEARER }), false],
    ["another", "a password", () => ({ ...evil, Authorization: "Basic YTpi" }), false],
    ["a sandbox", "a certificate", () => ({ Origin: "null" }), true],
    ["a longer name", "a certificate", () => ({ Origin: "https://console.example.com.evil" }), true],
    ["a local page", "nothing", () => program, false],
    ["a local page", "a browser's certificate", () => ({ ...program, ...browser }), true],
    ["a local page", "a certificate and a cookie", () => ({ ...program, ...cookie }), true],
    ["a local development server", "a certificate", () => ({ Origin: "http://localhost:3000" }), true],
    ["its own name without TLS", "a certificate", () => ({ Origin: `http://${gateway.authority}` }), true],
    ["a local page over TLS", "a certificate", () => ({ Origin: "https://localhost" }), true],
  ])("of %s with %s open no session", async (_origin, _credentials, headers, hasCertificate, offered) => {
    const certificate = hasCertificate ? jane : undefined;
    const answer = await gateway.exec({ certificate, headers: { ...headers() } }, offered);
    expect(answer.status).toBe(403);
    expect(JSON.parse(answer.body)).toMatchObject({ kind: "Status", reason: "Forbidden" });
    expect(answer.body.length).toBeLessThan(1_024);
    expect(gateway.kubelet.sessions).toHaveLength(0);
  });

  it.each<[string, string, () => object, boolean, string[]?]>([
    ["an allowed origin", "a certificate", () => ({ Origin: "https://Console.example.com" }), true],
    ["the gateway itself", "a certificate", own, true],
    ["the gateway itself", "a cookie", () => ({ ...own(), ...cookie, ...BEARER }), false],
    ["another", "a subprotocol's token", () => evil, false, protocols],
    ["another", "a token in a header, which no page can send", () => ({ ...evil, ...BEARER }), false],
    ["another", "that and a certificate", () => ({ ...evil, ...BEARER }), true],
    ["Kubernetes' conformance client", "a certificate", () => program, true],
    ["Kubernetes' conformance client", "a token", () => ({ ...program, ...BEARER }), false],
    ["none", "a certificate", () => ({}), true],
  ])("of %s with %s open one", async (_origin, _credentials, headers, hasCertificate, offered) => {
    const certificate = hasCertificate ? jane : undefined;
    const answer = await gateway.exec({ certificate, headers: { ...headers() } }, offered);
    expect(answer.status).toBe(101);
    expect(gateway.kubelet.sessions.splice(0)).toHaveLength(1);
  });

  it("that were refused are counted and logged", async () => {
    const logged = gateway.logLines.filter((line) => line.includes("is not among edge.allowedOrigins"));
    expect(JSON.parse(logged[0] ?? "{}")).toMatchObject({ msg: "request refused", code: 403 });
    const [line = ""] = await gateway.metric('sluice_connections_refused_total{reason="origin"}');
    expect(Number(line.split(" ")[1])).toBeGreaterThan(0);
  });
});

describe("connections", () => {
  let gateway: AccessGateway;
  const sockets: Socket[] = [];
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await gateway.stop();
  });

  const open = () => {
    const socket = connect(Number(gateway.authority.split(":")[1]), "127.0.0.1");
    sockets.push(socket);
    socket.on("error", () => {});
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    return { socket, closed };
  };

  const start = async (sections: object) => {
    gateway = await AccessGateway.start((folder) => ({ authentication: withTokens(folder), ...sections }));
  };

  it("an address has so many connections and no more", async () => {
    await start({ limits: { maxConnectionsPerAddress: 2 } });
    const first = open();
    open();
    await open().closed;
    expect(
      await gateway.metric('sluice_connections_refused_total{reason="too-many-of-address"} 1'),
    ).toHaveLength(1);
    first.socket.destroy();
    await soon(async () => expect((await gateway.exec({ headers: BEARER })).status).toBe(101));
  });

  it("a trusted proxy has no such bound", async () => {
    await start({ limits: { maxConnectionsPerAddress: 1 }, edge: { trustedProxies: ["127.0.0.0/8"] } });
    open();
    open();
    expect((await gateway.exec({ headers: BEARER })).status).toBe(101);
  });

  it("a TLS handshake that does not come is cut", async () => {
    await start({ timeouts: { handshake: "200ms" } });
    const started = performance.now();
    await open().closed;
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it("a request head that does not end is cut", async () => {
    await start({ timeouts: { handshake: "200ms" } });
    const port = Number(gateway.authority.split(":")[1]);
    const socket = connectTls({ host: "127.0.0.1", port, ca: gateway.trusted });
    sockets.push(socket);
    socket.on("error", () => {});
    socket.write(`GET ${EXEC_PATH} HTTP/1.1\r\nHost: x\r\nX-Slow: `);
    socket.resume();
    await new Promise((resolve) => socket.once("close", resolve));
  });
});

describe("the serving certificate", () => {
  it("is read again when its files change, and kept when they do not fit", async () => {
    const gateway = await AccessGateway.start((folder) => ({ authentication: withTokens(folder) }));
    try {
      const servedBy = async () => (await gateway.get("/version", {}, "GET", false)).servedBy;
      expect(await servedBy()).toBe("gateway");
      const renewed = await issueCertificate({ commonName: "renewed" }, undefined, {
        addresses: ["127.0.0.1"],
      });
      const other = await issueCertificate({ commonName: "other" });
      const write = (name: string, text: string) => writeFileSync(path.join(gateway.folder, name), text);
      write("server.crt", other.cert);
      await soon(() => expect(gateway.logLines.join("")).toContain("could not be read again"));
      expect(await servedBy()).toBe("gateway");
      write("server.crt", renewed.cert);
      write("server.key", renewed.key);
      await soon(async () => expect(await servedBy()).toBe("renewed"));
    } finally {
      await gateway.stop();
    }
  });
});

describe("an authority of clients that was taken away", () => {
  it("no longer lets in a client whose connection is open", async () => {
    const [users, others] = await Promise.all([
      issueCertificate({ commonName: "users" }),
      issueCertificate({ commonName: "others" }),
    ]);
    const jane = await issueCertificate({ commonName: "jane" }, users, { usage: "client" });
    const gateway = await AccessGateway.start((folder) => {
      writeFileSync(path.join(folder, "users.crt"), users.cert);
      return { authentication: { clientCAFile: "users.crt" } };
    });
    const session = connectHttp2(`https://${gateway.authority}`, { ...jane, rejectUnauthorized: false });
    const statusOfNext = async (): Promise<unknown> => {
      const stream = session.request({ ":path": "/api/v1/namespaces/default/pods/web" });
      stream.resume();
      const [headers] = await once(stream, "response");
      await once(stream, "close");
      return headers[":status"];
    };
    try {
      const write = (text: string) => writeFileSync(path.join(gateway.folder, "users.crt"), text);
      expect(await statusOfNext()).toBe(200);
      // One more authority is no reason to lose who is there.
      write(`${users.cert}\n${others.cert}`);
      await soon(() => expect(gateway.logLines.join("")).toContain("the serving certificate was read again"));
      expect(await statusOfNext()).toBe(200);
      write(others.cert);
      await soon(async () => expect(await statusOfNext()).toBe(401));
    } finally {
      session.destroy();
      await gateway.stop();
    }
  });
});

describe("forwarded addresses", () => {
  const rules = new EdgeRules({ allowedOrigins: [], trustedProxies: ["10.0.0.0/8", "::1"] });
  it.each([
    ["203.0.113.9", "1.1.1.1", ["203.0.113.9"]],
    ["10.0.0.1", "203.0.113.9", ["203.0.113.9", "10.0.0.1"]],
    ["::ffff:10.0.0.1", "6.6.6.6, 203.0.113.9, 10.0.0.2", ["203.0.113.9", "10.0.0.2", "10.0.0.1"]],
    ["10.0.0.1", undefined, ["10.0.0.1"]],
    ["::1", "10.1.1.1", ["10.1.1.1", "::1"]],
    ["0:0:0:0:0:ffff:10.0.0.1", "203.0.113.9", ["203.0.113.9", "10.0.0.1"]],
    ["10.0.0.1", "2001:DB8:0::9", ["2001:db8::9", "10.0.0.1"]],
    ["10.0.0.1", "6.6.6.6, <script>, 10.0.0.2", ["10.0.0.2", "10.0.0.1"]],
  ])("from %s saying %s are %j", (peer, said, expected) => {
    const headers: [string, string][] = said === undefined ? [] : [["X-Forwarded-For", said]];
    expect(rules.sourceAddressesOf(headers, peer)).toEqual(expected);
  });

  it("are no more hops than a request makes", () => {
    const said = Array.from({ length: 10_000 }, () => "10.0.0.1").join(", ");
    expect(rules.sourceAddressesOf([["X-Forwarded-For", said]], "10.0.0.1")).toHaveLength(1 + 32);
  });
});

describe("a node's address", () => {
  const never = async (): Promise<string[]> => {
    throw new Error("nobody is asked about an address");
  };

  it.each([
    "127.0.0.1",
    "127.255.0.9",
    "::1",
    "0.0.0.0",
    "::",
    "169.254.169.254",
    "fe80::1",
    "fe80::1%eth0",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::ffff:a9fe:a9fe",
    "0:0:0:0:0:ffff:127.0.0.1",
    "0000:0000:0000:0000:0000:FFFF:7F00:0001",
    "::ffff:0:7f00:1",
    "0:0:0:0:0:0:0:1",
    "FE80:0::1",
    "64:ff9b:1::7f00:1",
    "64:ff9b:1:7f00:0:100::",
    "2001:0:7f00:1::",
    "FD20:CE:0::254",
    "fd00:c1::a9fe:a9fe",
    "2130706433",
    "0x7f.1",
    "127.1",
    "fd00:ec2::254",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "::7f00:1",
    "224.0.0.1",
    "ff02::1",
    "100.100.100.200",
    "192.0.0.192",
  ])("%s is refused", async (address) => {
    await expect(new NodeAddresses([], never).resolve(address, 10_250)).rejects.toThrow(
      "address not allowed",
    );
  });

  it.each([
    "10.0.0.7",
    "192.168.1.1",
    "172.16.0.1",
    "203.0.113.1",
    "fd00::1",
    "2001:db8::1",
  ])("%s is taken", async (address) => {
    expect(await new NodeAddresses([], never).resolve(address, 10_250)).toBe(address);
  });

  it("is taken where the configuration says so, and nothing else with it", async () => {
    const addresses = new NodeAddresses(["127.0.0.0/8"], never);
    expect(await addresses.resolve("127.0.0.1", 10_250)).toBe("127.0.0.1");
    await expect(addresses.resolve("169.254.169.254", 10_250)).rejects.toThrow("address not allowed");
  });

  it.each([
    ["64:ff9b::/96", "64:ff9b::a9fe:a9fe", "64:ff9b::a00:7"],
    ["64:ff9b:1::/48", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a00:0:700:a00:7"],
    ["64:ff9b:1::/48", "64:ff9b:1:ffff::a9fe:a9fe", "64:ff9b:1:a00:0:700:a00:7"],
    ["2002::/16", "2002:a9fe:a9fe::1", "2002:a00:7::1"],
  ])("in an allowed %s leads to no refused network: %s", async (allowed, refused, taken) => {
    const addresses = new NodeAddresses([allowed], never);
    await expect(addresses.resolve(refused, 10_250)).rejects.toThrow("address not allowed");
    expect(await addresses.resolve(taken, 10_250)).toBe(taken);
  });

  it.each([
    "127.1",
    "2130706433",
    "localhost",
    "x.localhost.",
    "::1",
  ])("that a proxy would look up is refused where it leads to the proxy itself: %s", async (host) => {
    await expect(new NodeAddresses([], never).check(host, 10_250)).rejects.toThrow("address not allowed");
  });

  it.each([
    "x HTTP/1.1\r\nX-Smuggled: 1",
    "169.254.169.254 HTTP/1.1\r\nX",
    "127.0.0.1 ",
    "node\n",
    "a..b",
    "-node",
    "node_1",
    "user@node",
    "node:22",
    "",
  ])("that is neither an IP address nor a host name is refused on every path: %j", async (host) => {
    const addresses = new NodeAddresses([], async () => ["10.0.0.7"]);
    await expect(addresses.resolve(host, 10_250)).rejects.toThrow("address not allowed");
    await expect(addresses.check(host, 10_250)).rejects.toThrow("address not allowed");
  });

  it.each([
    "node-1",
    "NODE-1.Example.COM",
    "node-1.example.com.",
    "9.node",
  ])("may be a name: %s", async (host) => {
    const addresses = new NodeAddresses([], async () => ["10.0.0.7"]);
    expect([await addresses.resolve(host, 10_250), await addresses.check(host, 10_250)]).toEqual([
      "10.0.0.7",
      host,
    ]);
  });

  it("is looked up once, and refused when any answer is", async () => {
    const asked: string[] = [];
    const addresses = new NodeAddresses([], async (host) => {
      asked.push(host);
      return asked.length === 1 ? ["10.0.0.7", "10.0.0.8"] : ["10.0.0.7", "127.0.0.1"];
    });
    expect(await addresses.resolve("node-1", 10_250)).toBe("10.0.0.7");
    expect(asked).toEqual(["node-1"]);
    await expect(addresses.resolve("node-1", 10_250)).rejects.toThrow("address not allowed: 127.0.0.1");
  });

  it.each([
    ["a listener of ours", "10.0.0.7", "10.0.0.7", true],
    ["a listener of ours in another spelling", "10.0.0.7", "::ffff:a00:7", true],
    ["a listener of ours in a long spelling", "10.0.0.7", "0:0:0:0:0:ffff:10.0.0.7", true],
    ["a listener of ours behind NAT64", "10.0.0.7", "64:ff9b::a00:7", true],
    ["a listener of ours in IPv6", "2001:db8::7", "2001:DB8:0:0::7", true],
    ["a listener of ours on loopback, by the unspecified address", "127.0.0.1", "0.0.0.0", true],
    ["a listener of ours on every interface", "0.0.0.0", "10.1.1.1", true],
    ["a listener of ours on every interface, spelt out", "0:0:0:0:0:0:0:0", "10.1.1.1", true],
    ["a listener of ours on every interface, from loopback", "::", "127.0.0.9", true],
    ["the real API server, by its name", "kubernetes.default.svc", "10.96.0.1", true],
    ["somebody else", "0.0.0.0", "10.1.1.2", false],
  ])("that is the endpoint of %s", async (_, host, address, isReserved) => {
    const reserved = new ReservedEndpoints({
      list: () => [{ host, port: 6443 }],
      resolve: async () => ["10.96.0.1"],
      localAddresses: () => ["10.1.1.1"],
    });
    const addresses = new NodeAddresses(["0.0.0.0/0", "::/0"], never, reserved);
    const refused = `address not allowed: ${address.includes(":") ? `[${address}]` : address}:6443 is an API server`;
    const resolved = addresses.resolve(address, 6443);
    if (isReserved) await expect(resolved).rejects.toThrow(refused);
    else expect(await resolved).toBe(address);
    // The kubelet of a control plane is at the same address.
    expect(await addresses.resolve(address, 10_250)).toBe(address);
  });

  it.each([true, false])("that is the API server's is dialled only when told to: %s", async (isTold) => {
    const apiServer = await listenRaw((socket) => socket.destroy());
    const { port } = apiServer;
    const gateway = await AccessGateway.start(
      (folder) => ({
        authentication: withTokens(folder),
        upstreamAPIServer: { url: `http://127.0.0.1:${port}` },
        kubelet: { allowAPIServerEndpoints: isTold },
      }),
      { port },
    );
    try {
      const { message } = JSON.parse((await gateway.exec({ headers: BEARER })).body);
      const refused = `error dialing backend: address not allowed: 127.0.0.1:${port} is an API server`;
      if (isTold) expect(message).not.toContain("not allowed");
      else expect(message).toBe(refused);
      expect(apiServer.sockets).toHaveLength(isTold ? 1 : 0);
    } finally {
      await gateway.stop();
      await apiServer.close();
    }
  });

  it("on loopback is not dialled by a gateway that was not told to", async () => {
    const gateway = await AccessGateway.start((folder) => ({
      authentication: withTokens(folder),
      kubelet: { allowedAddresses: [] },
    }));
    try {
      for (let count = 0; count < 3; count += 1) {
        const answer = await gateway.exec({ headers: BEARER });
        expect(answer.status).toBe(500);
        expect(JSON.parse(answer.body).message).toBe("error dialing backend: address not allowed: 127.0.0.1");
      }
      expect(gateway.kubelet.openSockets).toBe(0);
      expect(await gateway.metric("sluice_node_addresses_refused_total ")).toEqual([
        "sluice_node_addresses_refused_total 3",
      ]);
      const lines = gateway.logLines.filter((line) => line.includes("a node's address is not dialled"));
      expect(lines).toHaveLength(1);
      expect(JSON.parse(lines[0] ?? "")).toMatchObject({ reason: "address not allowed: 127.0.0.1" });
    } finally {
      await gateway.stop();
    }
  });

  it("lists are read as networks", () => {
    expect(new AddressList(["10.0.0.0/8"]).has("::ffff:a00:1")).toBe(true);
    expect(new AddressList([]).has("10.0.0.1")).toBe(false);
    expect(canonicalAddress("[::1]")).toBe("::1");
    expect(() => new AddressList(["10.0.0.0/33"])).toThrow(RangeError);
    expect(new AddressList(["::ffff:10.0.0.0/104"]).has("10.1.1.1")).toBe(true);
    expect(new AddressList(["::ffff:10.0.0.0/104"]).has("11.1.1.1")).toBe(false);
  });

  it("is compared in one spelling, whatever it was written in", () => {
    const groups = fc.array(fc.constantFrom(0, 0, 0xffff, 1, 0xabc, 0x7f00, 0x64), {
      minLength: 8,
      maxLength: 8,
    });
    fc.assert(
      fc.property(groups, fc.boolean(), fc.integer({ min: 1, max: 4 }), (words, isUpper, width) => {
        const long = words.map((word) => word.toString(16).padStart(width, "0")).join(":");
        const spelt = isUpper ? long.toUpperCase() : long;
        const canonical = canonicalAddress(spelt);
        const family = isIP(canonical) === 4 ? "ipv4" : "ipv6";
        const exact = new BlockList();
        exact.addAddress(canonical, family);
        expect(exact.check(spelt, "ipv6")).toBe(true);
        expect(canonicalAddress(canonical)).toBe(canonical);
        expect(canonicalAddress(`[${spelt}%eth0]`)).toBe(canonical);
        expect(networkOf(spelt)).toBe(networkOf(canonical));
        if (family === "ipv6") expect(ipv6Groups(canonical)).toEqual(words);
      }),
      { numRuns: 2_000 },
    );
    expect(networkOf("::ffff:10.0.0.1")).not.toBe(networkOf("::ffff:10.0.0.2"));
  });
});

describe("a kubelet's certificate", () => {
  let authority: TestCertificate;
  let server: Server;
  let gateway: AccessGateway;
  let isAsked = false;

  beforeAll(async () => {
    authority = await issueCertificate({ commonName: "kubelets" });
  });
  afterEach(async () => {
    await gateway.stop();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const answerOf = async (commonName: string, kubelet: object, signer: TestCertificate = authority) => {
    isAsked = false;
    const pair = await issueCertificate({ commonName, organizations: ["system:nodes"] }, signer, {
      addresses: ["127.0.0.1"],
      usage: "server",
    });
    server = createHttpsServer(pair).on("upgrade", (_, socket) => {
      isAsked = true;
      socket.end("HTTP/1.1 418 x\r\nContent-Length: 0\r\n\r\n");
    });
    server.on("tlsClientError", () => {});
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    gateway = await AccessGateway.start(
      (folder) => {
        writeFileSync(path.join(folder, "kubelet-ca.crt"), authority.cert);
        return {
          authentication: withTokens(folder),
          kubelet: { scheme: "https", certificateAuthorityFile: "kubelet-ca.crt", ...kubelet },
        };
      },
      { port },
    );
    return await gateway.exec({ headers: BEARER });
  };

  it("of another authority ends the session before anything is sent", async () => {
    const stranger = await issueCertificate({ commonName: "kubelets" });
    const answer = await answerOf("system:node:node", {}, stranger);
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.body).message).toContain(
      "error dialing backend: tls: failed to verify certificate",
    );
    expect(isAsked).toBe(false);
  });

  it("of another node is refused when names are verified", async () => {
    const answer = await answerOf("system:node:other", { verifyNodeName: true });
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.body).message).toContain('"system:node:other"');
    expect(isAsked).toBe(false);
  });

  it("of the node itself is taken", async () => {
    await answerOf("system:node:node", { verifyNodeName: true });
    expect(isAsked).toBe(true);
  });

  it("of another node is taken when names are not verified", async () => {
    await answerOf("system:node:other", {});
    expect(isAsked).toBe(true);
  });
});
