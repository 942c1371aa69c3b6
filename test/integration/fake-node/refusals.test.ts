import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FakeNode } from "../../../packages/lab/src/fake-node/fake-node.ts";
import { rawExchange, startNode } from "./upgrade.ts";

let declaring: FakeNode;
let plain: FakeNode;
beforeAll(async () => {
  declaring = await startNode();
  plain = await startNode({ declaresWebSockets: false });
});
afterAll(async () => {
  await declaring.close();
  await plain.close();
});

const EXEC = "/exec/default/web/main?output=1&command=true";
const FORWARD = "/portForward/default/web";
const SPDY = ["Connection: Upgrade", "Upgrade: SPDY/3.1"];
const WEBSOCKET = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];
const stream = (protocol: string): string => `X-Stream-Protocol-Version: ${protocol}`;
const offer = (protocols: string): string => `Sec-WebSocket-Protocol: ${protocols}`;
const without = (lines: readonly string[], name: string): string[] =>
  lines.filter((line) => !line.startsWith(name));

const TEXT = ["Content-Type: text/plain; charset=utf-8"];
const HTTP_ERROR = [...TEXT, "X-Content-Type-Options: nosniff"];
const twice = (line: string): string => `${line}\n${line}\n`;
const V4_TO_V1 = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
const accepted = (protocol: string): string => `X-Accepted-Stream-Protocol-Versions: ${protocol}`;

interface Row {
  readonly name: string;
  readonly method?: string;
  readonly path?: string;
  readonly lines?: readonly string[];
  readonly status: string;
  readonly headers: readonly string[];
  readonly body: string;
  /** Only on a node that declares the feature, or only on one that does not. */
  readonly declares?: boolean;
}

// Texts and header order as captured from containerd 2.1 behind a kubelet's raw proxy.
const rows: Row[] = [
  {
    name: "an unknown path",
    path: "/nope",
    lines: SPDY,
    status: "404 Not Found",
    headers: HTTP_ERROR,
    body: "404 page not found\n",
  },
  {
    name: "PUT",
    method: "PUT",
    lines: SPDY,
    status: "405 Method Not Allowed",
    headers: ["Allow: GET, POST", ...TEXT],
    body: "405: Method Not Allowed",
  },
  {
    name: "no streams",
    path: "/exec/default/web/main?stdin=1&output=true",
    lines: SPDY,
    status: "400 Bad Request",
    headers: TEXT,
    body: "you must specify at least 1 of stdin, stdout, stderr",
  },
  {
    name: "only stderr with a terminal",
    path: "/exec/default/web/main?error=1&tty=1",
    lines: SPDY,
    status: "400 Bad Request",
    headers: TEXT,
    body: "you must specify at least 1 of stdin, stdout, stderr",
  },
  {
    name: "another pod",
    path: "/exec/default/nope/main?output=1",
    lines: SPDY,
    status: "404 Not Found",
    headers: TEXT,
    body: "pod does not exist",
  },
  {
    name: "another container",
    path: "/attach/default/web/c?output=1",
    lines: SPDY,
    status: "404 Not Found",
    headers: TEXT,
    body: 'container not found ("c")',
  },
  {
    name: "another uid",
    path: "/exec/default/web/other/main?output=1",
    lines: SPDY,
    status: "404 Not Found",
    headers: TEXT,
    body: 'container not found ("main")',
  },
  {
    name: "another pod to forward to",
    path: "/portForward/default/nope",
    lines: SPDY,
    status: "404 Not Found",
    headers: TEXT,
    body: "pod does not exist",
  },
  {
    name: "another uid to forward to",
    path: "/portForward/default/web/other",
    lines: SPDY,
    status: "404 Not Found",
    headers: TEXT,
    body: "pod not found",
  },
  {
    name: "no protocol header",
    lines: SPDY,
    status: "400 Bad Request",
    headers: HTTP_ERROR,
    body: twice(
      "unable to upgrade: header X-Stream-Protocol-Version does not exist in request with 2 headers",
    ),
  },
  {
    name: "an empty protocol header",
    lines: [...SPDY, stream("")],
    status: "400 Bad Request",
    headers: HTTP_ERROR,
    body: twice("unable to upgrade: header X-Stream-Protocol-Version contains [], but no valid protocols"),
  },
  {
    name: "only v5 over SPDY",
    lines: [...SPDY, stream("v5.channel.k8s.io")],
    status: "403 Forbidden",
    headers: [TEXT[0] ?? "", ...V4_TO_V1.map(accepted), "X-Content-Type-Options: nosniff"],
    body: twice(
      `unable to upgrade: unable to negotiate protocol: client supports [v5.channel.k8s.io], server accepts [${V4_TO_V1.join(" ")}]`,
    ),
  },
  {
    name: "Upgrade: SPDY/3",
    lines: ["Connection: Upgrade", "Upgrade: SPDY/3", stream("v4.channel.k8s.io")],
    status: "400 Bad Request",
    headers: [...HTTP_ERROR, "X-Stream-Protocol-Version: v4.channel.k8s.io"],
    body: 'unable to upgrade: missing upgrade headers in request: http.Header{"Connection":[]string{"Upgrade"}, "Upgrade":[]string{"SPDY/3"}, "X-Stream-Protocol-Version":[]string{"v4.channel.k8s.io"}}\n',
  },
  {
    name: "no protocol header to forward",
    path: FORWARD,
    lines: SPDY,
    status: "400 Bad Request",
    headers: HTTP_ERROR,
    body: "unable to upgrade: header X-Stream-Protocol-Version does not exist in request with 2 headers\n",
  },
  {
    name: "another protocol to forward",
    path: FORWARD,
    lines: [...SPDY, stream("v4.channel.k8s.io")],
    status: "403 Forbidden",
    headers: [TEXT[0] ?? "", accepted("portforward.k8s.io"), "X-Content-Type-Options: nosniff"],
    body: "unable to upgrade: unable to negotiate protocol: client supports [v4.channel.k8s.io], server accepts [portforward.k8s.io]\n",
  },
  {
    name: "v5",
    method: "GET",
    lines: [...WEBSOCKET, offer("v5.channel.k8s.io")],
    status: "403 Forbidden",
    headers: [],
    body: "",
    declares: false,
  },
  {
    name: "an unknown subprotocol",
    method: "GET",
    lines: [...WEBSOCKET, offer("v3.channel.k8s.io, bogus")],
    status: "403 Forbidden",
    headers: [],
    body: "",
  },
  {
    name: "POST of a WebSocket",
    lines: [...WEBSOCKET, offer("v4.channel.k8s.io")],
    status: "405 Method Not Allowed",
    headers: [],
    body: "bad method",
  },
  {
    name: "no key",
    method: "GET",
    lines: [...without(WEBSOCKET, "Sec-WebSocket-Key"), offer("v4.channel.k8s.io")],
    status: "400 Bad Request",
    headers: [],
    body: "mismatch challenge/response",
  },
  {
    name: "version 8",
    method: "GET",
    lines: [...without(WEBSOCKET, "Sec-WebSocket-Version"), "Sec-WebSocket-Version: 8"],
    status: "400 Bad Request",
    headers: ["Sec-WebSocket-Version: 13"],
    body: "missing or bad WebSocket Version",
  },
  {
    name: "no port to forward",
    method: "GET",
    path: FORWARD,
    lines: [...WEBSOCKET, offer("v4.channel.k8s.io")],
    status: "400 Bad Request",
    headers: TEXT,
    body: 'query parameter "port" is required',
  },
  {
    name: "a tunnel",
    method: "GET",
    path: FORWARD,
    lines: [...WEBSOCKET, offer("SPDY/3.1+portforward.k8s.io")],
    status: "400 Bad Request",
    headers: TEXT,
    body: 'query parameter "port" is required',
    declares: false,
  },
  {
    name: "a tunnel with ports",
    method: "GET",
    path: `${FORWARD}?port=80`,
    lines: [...WEBSOCKET, offer("SPDY/3.1+portforward.k8s.io")],
    status: "403 Forbidden",
    headers: [],
    body: "",
    declares: false,
  },
  {
    name: "a tunnel of something else",
    method: "GET",
    path: FORWARD,
    lines: [...WEBSOCKET, offer("SPDY/3.1+other.k8s.io")],
    status: "403 Forbidden",
    headers: [TEXT[0] ?? "", accepted("portforward.k8s.io"), "X-Content-Type-Options: nosniff"],
    body: "unable to upgrade: unable to negotiate protocol: client supports [other.k8s.io], server accepts [portforward.k8s.io]\n",
    declares: true,
  },
  {
    name: "a tunnel without a key",
    method: "GET",
    path: FORWARD,
    lines: [...without(WEBSOCKET, "Sec-WebSocket-Key"), offer("SPDY/3.1+portforward.k8s.io")],
    status: "400 Bad Request",
    headers: [
      "Content-Type: text/plain; charset=utf-8",
      "Sec-Websocket-Version: 13",
      "X-Content-Type-Options: nosniff",
    ],
    body: "Bad Request\n",
    declares: true,
  },
];

describe("refusals", () => {
  for (const row of rows) {
    for (const declares of row.declares === undefined ? [true, false] : [row.declares]) {
      it(`answers ${row.name} (${declares ? "declaring" : "plain"} node)`, async () => {
        const request = [
          `${row.method ?? "POST"} ${row.path ?? EXEC} HTTP/1.1`,
          "Host: node",
          ...(row.lines ?? []),
          "",
          "",
        ];
        const answer = await rawExchange(declares ? declaring : plain, request.join("\r\n"));
        const [head = "", body] = answer.split("\r\n\r\n");
        const [statusLine, ...headers] = head.split("\r\n");
        expect(statusLine).toBe(`HTTP/1.1 ${row.status}`);
        expect(body).toBe(row.body);
        const isBare = !row.headers.some((line) => line.startsWith("Content-Type"));
        const framing = isBare
          ? []
          : [expect.stringMatching(/^Date: .* GMT$/), `Content-Length: ${row.body.length}`];
        expect(headers).toEqual([...row.headers, ...framing]);
      });
    }
  }

  it.each(["GET", "POST"])("answers a plain %s with 500", async (method) => {
    const answer = await fetch(`http://${plain.address}:${plain.port}${EXEC}`, { method });
    expect(answer.status).toBe(500);
    expect(await answer.text()).toBe("Upgrade request required\n");
  });

  it("answers 101 with an empty subprotocol line when none was offered, as x/net does", async () => {
    const answer = await rawExchange(
      plain,
      [`GET ${EXEC} HTTP/1.1`, "Host: node", ...WEBSOCKET, "", ""].join("\r\n"),
    );
    expect(answer.slice(0, answer.indexOf("\r\n\r\n") + 7)).toBe(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: \r\n\r\n\x82\x01\x01",
    );
  });

  it("takes a head as long as a kubelet takes, and no longer one", async () => {
    const headOf = (bytes: number): string =>
      `GET /nope HTTP/1.1\r\nHost: node\r\nX: ${"x".repeat(bytes)}\r\n\r\n`;
    expect(await rawExchange(plain, headOf(1024 * 1024 - 100))).toMatch(/^HTTP\/1\.1 404 /);
    expect(await rawExchange(plain, headOf(1024 * 1024 + 100))).toMatch(/^HTTP\/1\.1 431 /);
  });

  it("asks for the token when it has one", async () => {
    const guarded = await startNode({ bearerToken: "secret" });
    const url = `http://${guarded.address}:${guarded.port}${EXEC}`;
    const refused = await fetch(url, { headers: { Authorization: "Bearer wrong" } });
    expect([refused.status, await refused.text()]).toEqual([401, "Unauthorized"]);
    expect((await fetch(url, { headers: { Authorization: "Bearer secret" } })).status).toBe(500);
    await guarded.close();
  });
});
