import { afterAll, beforeAll, expect, it } from "vitest";
import type { ProbeHandler } from "../../src/api/probe-objects.ts";
import { runProbe } from "../../src/probes/run-probe.ts";
import { GoProbePrograms, type ProberQuestion } from "../support/kubelet-prober.ts";
import {
  closedPort,
  MISBEHAVIOURS,
  type MisbehavingServer,
  type Misbehaviour,
  startServer,
} from "../support/misbehaving-servers.ts";
import { describeReal } from "../support/real-parts.ts";

const TIMEOUT_MS = 1_000;
const HOST = "127.0.0.1";

/** Where the verdict is the same and the reason is worded otherwise, because Node does not tell what Go knows. */
const WORDED_OTHERWISE: ReadonlyMap<string, string> = new Map([
  // OpenSSL does not show the bytes that are no TLS record.
  ["http: server gave HTTP response to HTTPS client", "tls: first record does not look like a TLS handshake"],
]);

/** One probe in both languages. */
function question(kind: string, port: number, more: Partial<ProberQuestion> = {}): ProberQuestion {
  const base = { Host: HOST, Port: port, TimeoutMs: TIMEOUT_MS, ...more };
  if (kind === "tcp" || kind === "grpc") return { Kind: kind, ...base };
  return {
    Kind: "http",
    Path: "/p",
    Scheme: kind === "https" ? "HTTPS" : "HTTP",
    Protocol: kind === "h2c" ? "HTTP2" : undefined,
    ...base,
  };
}

function handlerOf({
  Kind,
  Port,
  Path,
  Scheme,
  Protocol,
  Mode,
  Service,
  Headers,
}: ProberQuestion): ProbeHandler {
  if (Kind === "tcp") return { tcpSocket: { port: Port } };
  if (Kind === "grpc") {
    return { grpc: { port: Port, service: Service ?? "", ...(Mode && { mode: Mode }) } };
  }
  return {
    httpGet: {
      port: Port,
      path: Path ?? "/",
      scheme: Scheme ?? "HTTP",
      ...(Protocol && { protocol: Protocol }),
      ...(Headers && { httpHeaders: Headers }),
    },
  };
}

async function ourAnswer(asked: ProberQuestion): Promise<string> {
  const { result, message, error } = await runProbe(
    handlerOf(asked),
    { host: asked.Host, containerPorts: [] },
    {
      timeoutMs: asked.TimeoutMs,
      userAgentVersion: "1.36",
      gates: { H2CContainerProbe: true, GRPCContainerProbeTLS: true },
    },
  );
  return normal(result.toLowerCase(), message, error);
}

/**
 * Whether a broken connection shows as FIN or as RST, to a read or to a write, is a race, so whether it ended within something is too, and Go names
 * the name server that it asked. A server that speaks before it was asked anything loses Go the first words of its error.
 */
function normal(result: string, output: string, error: string | undefined): string {
  const text = error === undefined ? output : `ERROR ${error}`;
  return `${result}: ${text}`
    .replace(
      "net/http: HTTP/1.x transport connection broken: malformed HTTP response",
      "malformed HTTP response",
    )
    .replace(
      /(?:(?:unexpected )?EOF|(?:read|write) tcp [^ ]+: (?:read|write): (?:connection reset by peer|broken pipe))$/,
      "BROKEN",
    )
    .replace(/ on [\d.]+:53: /, ": ");
}

describeReal("go", "the verdicts and texts of Kubernetes' own probers", () => {
  let go: GoProbePrograms;
  let served: Readonly<Record<string, { readonly port: number }>>;
  const servers = new Map<Misbehaviour, MisbehavingServer>();

  beforeAll(async () => {
    go = new GoProbePrograms();
    served = await go.startServers();
    for (const [name, behaviour] of Object.entries(MISBEHAVIOURS)) {
      servers.set(name as Misbehaviour, await startServer(behaviour));
    }
  }, 300_000);
  afterAll(async () => {
    go?.stop();
    await Promise.all([...servers.values()].map((server) => server.close()));
  });

  /** What differs is asked again, twice at most: servers that hang up are races, lost by either side now and then. */
  async function expectSame(asked: ReadonlyMap<string, ProberQuestion>): Promise<void> {
    let differences = await differencesIn(asked);
    for (let round = 0; round < 2 && differences.length > 0; round++) {
      const again = new Set(differences.map(({ name }) => name));
      differences = await differencesIn(new Map([...asked].filter(([name]) => again.has(name))));
    }
    expect(differences).toEqual([]);
  }

  async function differencesIn(asked: ReadonlyMap<string, ProberQuestion>) {
    const theirs = await go.ask([...asked.values()]);
    const ours = await Promise.all([...asked.values()].map(ourAnswer));
    return [...asked.keys()].flatMap((name, index) => {
      const { result = "", output = "", error } = theirs[index] ?? {};
      let kubernetes = normal(result, output, error);
      for (const [their, our] of WORDED_OTHERWISE) kubernetes = kubernetes.replace(their, our);
      return ours[index] === kubernetes ? [] : [{ name, kubernetes, sluice: ours[index] }];
    });
  }

  it.each(["http", "h2c", "grpc", "tcp"])("%s against servers that misbehave", async (kind) => {
    await expectSame(
      new Map(Array.from(servers, ([name, { port }]) => [`${kind}, ${name}`, question(kind, port)])),
    );
  });

  it("every kind against every server", async () => {
    const kinds: [string, Partial<ProberQuestion>][] = [
      ["http", {}],
      ["https", {}],
      ["h2c", {}],
      ["grpc", {}],
      ["grpc", { Mode: "TLS" }],
      ["grpc", { Service: "down" }],
      ["grpc", { Service: "nobody" }],
      ["tcp", {}],
    ];
    await expectSame(
      new Map(
        Object.entries(served).flatMap(([name, { port }]) =>
          kinds.map(([kind, more]) => [
            `${kind} ${Object.values(more).join()} at ${name}`,
            question(kind, port, more),
          ]),
        ),
      ),
    );
  });

  it("ports, names and paths", async () => {
    const closed = await closedPort();
    const asked = new Map<string, ProberQuestion>();
    for (const kind of ["http", "h2c", "grpc", "tcp"]) {
      asked.set(`${kind}, closed port`, question(kind, closed));
      asked.set(`${kind}, unknown name`, question(kind, 80, { Host: "nosuch.invalid" }));
    }
    for (const port of [0, 65_536, -1]) {
      // TCP's prober is never asked for these: the port is looked at first.
      asked.set(`http, port ${port}`, question("http", port));
      if (port >= 0) asked.set(`grpc, port ${port}`, question("grpc", port));
    }
    const paths = [
      "",
      "x",
      "?a=b",
      "/%zz",
      "a:b",
      "/a b",
      "//u@h/x",
      "/é",
      "/x#f",
      "1a:b",
      "/\u0001",
      "http://o/y?z",
    ];
    for (const path of paths) asked.set(`path ${path}`, question("http", closed, { Path: path }));
    await expectSame(asked);
  });

  it("headers that can not be sent", async () => {
    const headers = [
      { name: "a b", value: "x" },
      { name: "X-A", value: "a\nb" },
      { name: "", value: "x" },
      { name: "Upgrade", value: "websocket" },
      { name: "Connection", value: "upgrade" },
      { name: "Host", value: "a b" },
    ];
    const asked = new Map<string, ProberQuestion>();
    for (const header of headers) {
      asked.set(
        `http ${JSON.stringify(header)}`,
        question("http", served.http1?.port ?? 0, { Headers: [header] }),
      );
      asked.set(
        `h2c ${JSON.stringify(header)}`,
        question("h2c", served.h2c?.port ?? 0, { Headers: [header] }),
      );
    }
    await expectSame(asked);
  });
});
