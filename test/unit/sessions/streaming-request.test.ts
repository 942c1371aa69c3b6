import { describe, expect, it } from "vitest";
import { StatusError } from "../../../packages/client/src/api/status.ts";
import type { HeaderList } from "../../../packages/client/src/http/header-list.ts";
import { clientOfferOf } from "../../../src/sessions/client-offer.ts";
import { matchStreamingPath, parseStreamingRequest } from "../../../src/sessions/streaming-request.ts";

type Subresource = "exec" | "attach" | "portforward";

function parse(query: string, subresource: Subresource = "exec", headers: HeaderList = []) {
  const path = { namespace: "default", pod: "web", subresource };
  const url = new URL(`http://gateway/api/v1/namespaces/default/pods/web/${subresource}${query}`);
  return parseStreamingRequest(path, { method: "GET", url, headers, remoteAddress: "127.0.0.1" });
}

function refusalOf(query: string, subresource: Subresource = "exec"): unknown {
  try {
    parse(query, subresource);
  } catch (error) {
    if (error instanceof StatusError) return [error.code, error.status.message];
    throw error;
  }
  return undefined;
}

describe("streaming paths", () => {
  const rows: [path: string, found: object | undefined][] = [
    ["/api/v1/namespaces/default/pods/web/exec", { namespace: "default", pod: "web", subresource: "exec" }],
    ["/api/v1/namespaces/n/pods/p/attach", { namespace: "n", pod: "p", subresource: "attach" }],
    ["/api/v1/namespaces/n/pods/p/portforward", { namespace: "n", pod: "p", subresource: "portforward" }],
    ["/api/v1/namespaces/n/pods/p/exec/", { namespace: "n", pod: "p", subresource: "exec" }],
    ["/api/v1/namespaces/n/pods/%77eb/exec", { namespace: "n", pod: "web", subresource: "exec" }],
    ["/api/v1/namespaces/n/pods/a%2Fb/exec", undefined],
    ["/api/v1/namespaces/n%2fpods/pods/p/exec", undefined],
    ["/api/v1/namespaces/n/pods/a%5Cb/exec", undefined],
    ["/api/v1/namespaces/n/pods/%2e%2e/exec", undefined],
    ["/api/v1/namespaces/n/pods/%2E/exec", undefined],
    ["/api/v1/namespaces/n/pods/%zz/exec", undefined],
    ["/api/v1/namespaces/n/pods/%ff/exec", undefined],
    ["/api/v1/namespaces//pods/p/exec", undefined],
    ["/api/v1/namespaces/n/pods//exec", undefined],
    ["/api/v1/namespaces/n/pods/p/exec/more", undefined],
    ["/api/v1/namespaces/n/pods/p/portForward", undefined],
    ["/api/v1/namespaces/n/pods/p/EXEC", undefined],
    ["/api/v1/namespaces/n/pods/p/log", undefined],
    ["/api/v1/namespaces/n/pods/p/proxy/exec", undefined],
    ["/api/v1/namespaces/n/services/p/exec", undefined],
    ["/apis/v1/namespaces/n/pods/p/exec", undefined],
    ["//api/v1/namespaces/n/pods/p/exec", undefined],
    ["/prefix/api/v1/namespaces/n/pods/p/exec", undefined],
  ];
  for (const [path, found] of rows) {
    it(path, () => expect(matchStreamingPath(path)).toEqual(found));
  }
});

describe("booleans of the query (reference: absent, 0 and false are false, anything else is true)", () => {
  const rows: [query: string, isSet: boolean][] = [
    ["", false],
    ["?stdin=0", false],
    ["?stdin=false", false],
    ["?stdin=False", false],
    ["?stdin=FALSE", false],
    ["?stdin=1", true],
    ["?stdin=true", true],
    ["?stdin=t", true],
    ["?stdin=no", true],
    ["?stdin=00", true],
    ["?stdin", true],
    ["?stdin=", true],
    ["?stdin=false&stdin=true", false],
    ["?stdin=true&stdin=false", true],
    ["?STDIN=true", false],
  ];
  for (const [query, isSet] of rows) {
    it(query || "absent", () => expect(parse(query).streams.stdin).toBe(isSet));
  }

  it("each flag is its own", () => {
    expect(parse("?tty=1&stderr").streams).toEqual({ stdin: false, stdout: false, stderr: true, tty: true });
  });
});

describe("other options", () => {
  it("command: every element, in order, empty ones and duplicates too", () => {
    expect(parse("?command=sh&command=-c&command=&command=a+b%2Bc%26d&command=sh").command).toEqual([
      "sh",
      "-c",
      "",
      "a b+c&d",
      "sh",
    ]);
  });

  it("attach and port-forward have no command", () => {
    expect(parse("?command=sh", "attach").command).toEqual([]);
    expect(parse("?command=sh", "portforward").command).toEqual([]);
  });

  it("ports are read for port-forward only", () => {
    expect(parse("?ports=x", "exec").ports).toEqual([]);
    expect(parse("?ports=80", "attach").ports).toEqual([]);
  });

  it("container: an empty one counts as none, the first counts", () => {
    expect(parse("?container=").container).toBeUndefined();
    expect(parse("?container=a&container=b").container).toBe("a");
  });

  const portRows: [query: string, ports: number[]][] = [
    ["", []],
    ["?ports=80", [80]],
    ["?ports=80,443", [80, 443]],
    ["?ports=80&ports=443,8080", [80, 443, 8080]],
    ["?ports=080,0,65535", [80, 0, 65535]],
  ];
  for (const [query, ports] of portRows) {
    it(`ports: ${query || "none"}`, () => expect(parse(query, "portforward").ports).toEqual(ports));
  }

  const portProblems: [query: string, problem: string][] = [
    ["?ports=", '"": invalid syntax'],
    ["?ports=http", '"http": invalid syntax'],
    ["?ports=80,", '"": invalid syntax'],
    ["?ports=80&ports=1,x", '"x": invalid syntax'],
    ["?ports=0x50", '"0x50": invalid syntax'],
    ["?ports=8e1", '"8e1": invalid syntax'],
    ["?ports=%2B80", '"+80": invalid syntax'],
    ["?ports=-0", '"-0": invalid syntax'],
    ["?ports=%00", '"\\x00": invalid syntax'],
    ["?ports=65536", '"65536": value out of range'],
  ];
  const refused: [query: string, subresource: Subresource, message: string][] = [
    ...portProblems.map(([query, problem]): [string, Subresource, string] => [
      query,
      "portforward",
      `cannot convert to []int32: strconv.ParseUint: parsing ${problem}`,
    ]),
    ["?dryRun=All", "exec", "dryRun is not supported"],
    ["?dryRun=", "attach", "dryRun is not supported"],
    ["?dryRun=All", "portforward", "dryRun is not supported"],
  ];
  for (const [query, subresource, message] of refused) {
    it(`400: ${subresource}${query}`, () => expect(refusalOf(query, subresource)).toEqual([400, message]));
  }
});

describe("the client's offer", () => {
  const upgrade = (connection: string, protocol: string, ...more: [string, string][]): HeaderList => [
    ["Connection", connection],
    ["Upgrade", protocol],
    ...more,
  ];
  const rows: [name: string, headers: HeaderList, offer: object][] = [
    ["nothing", [], { transport: "none" }],
    ["Upgrade alone", [["Upgrade", "websocket"]], { transport: "none" }],
    ["keep-alive", upgrade("keep-alive", "websocket"), { transport: "none" }],
    ["websocket", upgrade("Upgrade", "websocket"), { transport: "websocket", protocols: [] }],
    ["any case", upgrade("uPGRADE", "WebSocket"), { transport: "websocket", protocols: [] }],
    ["in a list", upgrade("keep-alive, Upgrade", "websocket"), { transport: "websocket", protocols: [] }],
    [
      "on a second Connection line",
      [["connection", "close"], ...upgrade("upgrade", "websocket")],
      { transport: "websocket", protocols: [] },
    ],
    [
      "subprotocols over several lines",
      upgrade("Upgrade", "websocket", ["Sec-WebSocket-Protocol", "a, b"], ["sec-websocket-protocol", " c ,"]),
      { transport: "websocket", protocols: ["a", "b", "c"] },
    ],
    [
      "SPDY with repeated lines and commas",
      upgrade(
        "Upgrade",
        "spdy/3.1",
        ["X-Stream-Protocol-Version", "v5, v4"],
        ["X-Stream-Protocol-Version", "v3"],
      ),
      { transport: "spdy", protocols: ["v5", "v4", "v3"] },
    ],
    ["SPDY/3", upgrade("Upgrade", "SPDY/3"), { transport: "unsupported", upgrade: "SPDY/3" }],
    ["h2c", upgrade("Upgrade", "h2c"), { transport: "unsupported", upgrade: "h2c" }],
    ["a list", upgrade("Upgrade", "websocket, h2c"), { transport: "unsupported", upgrade: "websocket, h2c" }],
    [
      "a list over two lines",
      upgrade("Upgrade", "websocket", ["Upgrade", "SPDY/3.1"]),
      { transport: "unsupported", upgrade: "websocket, SPDY/3.1" },
    ],
    ["no Upgrade line", [["Connection", "Upgrade"]], { transport: "unsupported", upgrade: "" }],
  ];
  for (const [name, headers, offer] of rows) {
    it(name, () => expect(clientOfferOf(headers)).toEqual(offer));
  }
});
