import { describe, expect, it } from "vitest";
import type { HeaderLine } from "../../../../packages/client/src/http/header-list.ts";
import { kubeletPath } from "../../../../src/legs/api-server/api-server-leg.ts";
import { makePlan, type Plan } from "../../../../src/sessions/plan.ts";
import { parseStreamingRequest, type Subresource } from "../../../../src/sessions/streaming-request.ts";
import { type UpstreamRequest, upstreamRequestFor } from "../../../../src/sessions/upstream-request.ts";

const TRANSLATE: Plan = makePlan("translate", "node-speaks-spdy-only");
const TUNNEL: Plan = makePlan("tunnel", "node-speaks-spdy-only");
const BRIDGE: Plan = makePlan("bridge", "spdy-over-websocket-hop");
const PASS: Plan = makePlan("pass-through", "node-speaks-websocket");

const WEBSOCKET: HeaderLine[] = [
  ["Host", "gateway.example.com"],
  ["Connection", "Upgrade"],
  ["Upgrade", "websocket"],
  ["Sec-WebSocket-Version", "13"],
  ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="],
];
const SPDY: HeaderLine[] = [
  ["Connection", "Upgrade"],
  ["Upgrade", "SPDY/3.1"],
];

interface Asked {
  subresource?: Subresource;
  query?: string;
  container?: string;
  headers?: HeaderLine[];
  plan?: Plan;
  method?: string;
  namespace?: string;
  pod?: string;
}

function ask({
  subresource = "exec",
  query = "",
  headers = WEBSOCKET,
  plan = PASS,
  ...rest
}: Asked): UpstreamRequest {
  const { namespace = "default", pod = "web", method = "GET", container = "main" } = rest;
  const request = parseStreamingRequest(
    { namespace, pod, subresource },
    { method, url: new URL(`http://gateway/x${query}`), headers, remoteAddress: "::ffff:192.0.2.7" },
  );
  return upstreamRequestFor(
    request,
    kubeletPath(request, subresource === "portforward" ? undefined : container),
    plan,
  );
}

/** The values of every line of that name. */
const valuesOf = ({ headers }: UpstreamRequest, name: string): string[] =>
  headers.filter(([line]) => line.toLowerCase() === name).map(([, value]) => value);

describe("the kubelet's URL (reference 1.3)", () => {
  const rows: [name: string, asked: Asked, path: string][] = [
    ["no flags", {}, "/exec/default/web/main"],
    [
      "only true flags, as 1",
      { query: "?stdin=true&stdout=false&stderr=0" },
      "/exec/default/web/main?input=1",
    ],
    [
      "all flags",
      { query: "?stdin&stdout&stderr&tty" },
      "/exec/default/web/main?error=1&input=1&output=1&tty=1",
    ],
    [
      "command repeated in order, awkward bytes encoded",
      { query: "?command=sh&command=-c&command=echo+%26%3D%2B%23%25+%C3%A9" },
      "/exec/default/web/main?command=sh&command=-c&command=echo+%26%3D%2B%23%25+%C3%A9",
    ],
    ["an empty argument", { query: "?command=" }, "/exec/default/web/main?command="],
    [
      "attach has no command",
      { subresource: "attach", query: "?command=x&stdout=1" },
      "/attach/default/web/main?output=1",
    ],
    [
      "other parameters do not travel",
      { query: "?input=1&uid=x&timeout=5&stdout=1" },
      "/exec/default/web/main?output=1",
    ],
    ["port-forward, capital F, no container", { subresource: "portforward" }, "/portForward/default/web"],
    [
      "ports joined into one port",
      { subresource: "portforward", query: "?ports=80&ports=90,100" },
      "/portForward/default/web?port=80%2C90%2C100",
    ],
    [
      "port-forward has no flags",
      { subresource: "portforward", query: "?stdin=1" },
      "/portForward/default/web",
    ],
    ["segments are encoded", { namespace: "a b", pod: "c?d", container: "e#f" }, "/exec/a%20b/c%3Fd/e%23f"],
  ];
  for (const [name, asked, path] of rows) {
    it(name, () => expect(ask(asked).path).toBe(path));
  }
});

describe("translate", () => {
  it("sends its own headers only, v4 to v2, by POST", () => {
    const headers: HeaderLine[] = [
      ...WEBSOCKET,
      ["Sec-WebSocket-Protocol", "v5.channel.k8s.io"],
      ["User-Agent", "kubectl"],
      ["Cookie", "a=b"],
      ["Traceparent", "00-1-2-00"],
      ["X-Stream-Protocol-Version", "channel.k8s.io"],
    ];
    expect(ask({ plan: TRANSLATE, headers })).toEqual({
      method: "POST",
      path: "/exec/default/web/main",
      upgrade: "SPDY/3.1",
      headers: [
        ["Connection", "Upgrade"],
        ["Upgrade", "SPDY/3.1"],
        ["X-Stream-Protocol-Version", "v4.channel.k8s.io"],
        ["X-Stream-Protocol-Version", "v3.channel.k8s.io"],
        ["X-Stream-Protocol-Version", "v2.channel.k8s.io"],
      ],
    });
  });
});

describe("tunnel", () => {
  const tunnel = (protocols: string, ...more: HeaderLine[]): UpstreamRequest =>
    ask({
      subresource: "portforward",
      plan: TUNNEL,
      headers: [...WEBSOCKET, ["Sec-WebSocket-Protocol", protocols], ...more],
    });

  it("POST, SPDY, the stripped protocol, no WebSocket header", () => {
    expect(tunnel("SPDY/3.1+portforward.k8s.io", ["User-Agent", "kubectl"])).toEqual({
      method: "POST",
      path: "/portForward/default/web",
      upgrade: "SPDY/3.1",
      headers: [
        ["Connection", "Upgrade"],
        ["Upgrade", "SPDY/3.1"],
        ["X-Stream-Protocol-Version", "portforward.k8s.io"],
        ["User-Agent", "kubectl"],
        ["X-Forwarded-For", "192.0.2.7"],
      ],
    });
  });

  it("several offers are one line each, an alias adds none", () => {
    const asked = tunnel(
      "v2.portforward.k8s.io, SPDY/3.1+portforward.k8s.io, SPDY/3.1+v9.portforward.k8s.io, x",
    );
    expect(valuesOf(asked, "x-stream-protocol-version")).toEqual([
      "portforward.k8s.io",
      "v9.portforward.k8s.io",
    ]);
  });

  it("a protocol version that the client wrote itself is not offered in its name", () => {
    const asked = tunnel("SPDY/3.1+portforward.k8s.io", ["X-Stream-Protocol-Version", "smuggled"]);
    expect(valuesOf(asked, "x-stream-protocol-version")).toEqual(["portforward.k8s.io"]);
  });
});

describe("bridge", () => {
  const asked = (subresource: Subresource, headers: HeaderLine[]) =>
    ask({ subresource, headers, plan: BRIDGE, method: "POST" });

  it.each([
    ["exec", "v5.channel.k8s.io"],
    ["attach", "v5.channel.k8s.io"],
    ["portforward", "SPDY/3.1+portforward.k8s.io"],
  ] as const)("%s is asked as a WebSocket client of our own", (subresource, protocol) => {
    const request = asked(subresource, [
      ...SPDY,
      ["X-Stream-Protocol-Version", "v4.channel.k8s.io"],
      ["User-Agent", "kubectl/v1.20"],
      ["Authorization", "Bearer secret"],
    ]);
    const key = request.webSocket?.key ?? "";
    expect(Buffer.from(key, "base64")).toHaveLength(16);
    expect(request).toMatchObject({
      method: "GET",
      upgrade: "websocket",
      webSocket: { protocols: [protocol] },
    });
    expect(request.headers).toEqual([
      ["Connection", "Upgrade"],
      ["Upgrade", "websocket"],
      ["Sec-WebSocket-Version", "13"],
      ["Sec-WebSocket-Key", key],
      ["Sec-WebSocket-Protocol", protocol],
      ["User-Agent", "kubectl/v1.20"],
      ["X-Forwarded-For", "192.0.2.7"],
    ]);
  });

  it("the client's own WebSocket handshake stays behind, and every key is another", () => {
    const [first, second] = [1, 2].map(() =>
      asked("exec", [...WEBSOCKET, ["Sec-WebSocket-Protocol", "v4.channel.k8s.io"]]),
    );
    for (const request of [first, second] as UpstreamRequest[]) {
      expect(valuesOf(request, "sec-websocket-key")).toEqual([request.webSocket?.key]);
      expect(valuesOf(request, "sec-websocket-protocol")).toEqual(["v5.channel.k8s.io"]);
      expect(valuesOf(request, "sec-websocket-version")).toEqual(["13"]);
    }
    expect(first?.webSocket?.key).not.toBe(second?.webSocket?.key);
    expect(first?.webSocket?.key).not.toBe("dGhlIHNhbXBsZSBub25jZQ==");
  });
});

describe("headers that pass through", () => {
  const kept = (...lines: HeaderLine[]): UpstreamRequest => ask({ headers: [...WEBSOCKET, ...lines] });

  it("WebSocket: the handshake's own lines and the rest; not Host, not extensions", () => {
    const asked = kept(
      ["Sec-WebSocket-Protocol", "v4.channel.k8s.io, channel.k8s.io"],
      ["Sec-WebSocket-Extensions", "permessage-deflate"],
      ["User-Agent", "browser"],
      ["Origin", "https://example.com"],
    );
    expect([asked.method, asked.upgrade]).toEqual(["GET", "websocket"]);
    expect(asked.headers).toEqual([
      ["Connection", "Upgrade"],
      ["Upgrade", "websocket"],
      ["Sec-WebSocket-Version", "13"],
      ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="],
      ["Sec-WebSocket-Protocol", "v4.channel.k8s.io, channel.k8s.io"],
      ["User-Agent", "browser"],
      ["Origin", "https://example.com"],
      ["X-Forwarded-For", "192.0.2.7"],
    ]);
  });

  it("SPDY keeps its method and every protocol line", () => {
    const lines: HeaderLine[] = [
      ["X-Stream-Protocol-Version", "v5.channel.k8s.io"],
      ["X-Stream-Protocol-Version", "v4.channel.k8s.io"],
    ];
    const asked = ask({ method: "POST", headers: [...SPDY, ...lines, ["Content-Length", "0"]] });
    expect([asked.method, asked.upgrade]).toEqual(["POST", "SPDY/3.1"]);
    expect(valuesOf(asked, "x-stream-protocol-version")).toEqual(["v5.channel.k8s.io", "v4.channel.k8s.io"]);
    expect(valuesOf(asked, "content-length")).toEqual([]);
  });

  const gone: HeaderLine[] = [
    ["Authorization", "Bearer secret"],
    ["AUTHORIZATION", "Basic secret"],
    ["Cookie", "session=secret"],
    ["Impersonate-User", "system:admin"],
    ["impersonate-group", "system:masters"],
    ["IMPERSONATE-UID", "0"],
    ["Impersonate-Extra-Scopes", "all"],
    ["iMPERSONATE-eXTRA-sCOPES", "all"],
    ["X-Remote-User", "system:admin"],
    ["x-remote-group", "system:masters"],
    ["X-REMOTE-EXTRA-Scopes", "all"],
    ["Keep-Alive", "timeout=5"],
    ["Proxy-Authorization", "Basic secret"],
    ["Transfer-Encoding", "chunked"],
    ["Sec-WebSocket-Extensions", "x"],
  ];
  for (const line of gone) {
    it(`${line[0]} does not travel`, () => {
      expect(kept(line).headers).toEqual(kept().headers);
    });
  }

  it("X-Forwarded-For of the client is not believed", () => {
    expect(
      valuesOf(kept(["X-Forwarded-For", "10.0.0.1"], ["x-forwarded-for", "10.0.0.2"]), "x-forwarded-for"),
    ).toEqual(["192.0.2.7"]);
  });

  it("Connection that names X-Forwarded-For or authorization can not take ours away, nor bring theirs", () => {
    const asked = ask({
      headers: [
        ["Connection", "Upgrade, X-Forwarded-For, authorization, x-custom, Upgrade, Sec-WebSocket-Key2"],
        ["Upgrade", "websocket"],
        ["X-Forwarded-For", "10.0.0.1"],
        ["Authorization", "Bearer secret"],
        ["X-Custom", "hop"],
        ["X-Kept", "1"],
      ],
    });
    expect(asked.headers).toEqual([
      ["Connection", "Upgrade"],
      ["Upgrade", "websocket"],
      ["X-Kept", "1"],
      ["X-Forwarded-For", "192.0.2.7"],
    ]);
  });

  it("a bearer subprotocol does not travel, the others do, line by line", () => {
    const token = "base64url.bearer.authorization.k8s.io.c2VjcmV0";
    const asked = kept(
      ["Sec-WebSocket-Protocol", `${token}, v4.channel.k8s.io`],
      ["sec-websocket-protocol", token],
      ["Sec-WebSocket-Protocol", `channel.k8s.io,${token}`],
    );
    expect(valuesOf(asked, "sec-websocket-protocol")).toEqual(["v4.channel.k8s.io", "channel.k8s.io"]);
    expect(JSON.stringify(asked)).not.toContain("c2VjcmV0");
  });
});
