import { connect } from "node:http2";
import { describe, expect, it } from "vitest";
import { MISBEHAVIOURS, type Misbehaviour, startServer } from "../../support/misbehaving-servers.ts";
import { probe } from "./probe.ts";

/** Longer than any answer of a server here takes, and short for the silences. */
const PATIENCE_MS = 400;

/** Everything that a client of `node:http2` is told about one GET, in order. */
async function reportOfNode(name: Misbehaviour): Promise<string> {
  const server = await startServer(MISBEHAVIOURS[name]);
  const said: string[] = [];
  const session = connect(`http://127.0.0.1:${server.port}`);
  const request = session.request({ ":path": "/p" });
  const report = await new Promise<string>((resolve) => {
    const timer = setTimeout(() => resolve([...said, "nothing"].join(", ")), PATIENCE_MS);
    session.on("goaway", (code, lastStreamId) => said.push(`GOAWAY ${code} ${lastStreamId}`));
    session.on("error", (error) => said.push(error.message));
    request.on("response", (headers) => said.push(`response ${headers[":status"]}`));
    request.on("error", (error) => said.push(error.message));
    request.on("close", () => {
      clearTimeout(timer);
      resolve([...said, `closed ${request.rstCode}`].join(", "));
    });
    request.resume();
  });
  session.destroy();
  await server.close();
  return report;
}

async function reportOfOurs(name: Misbehaviour): Promise<string> {
  const server = await startServer(MISBEHAVIOURS[name]);
  const handler = { httpGet: { port: server.port, path: "/p", protocol: "HTTP2" as const } };
  const { message, error } = await probe(handler, { timeoutMs: PATIENCE_MS });
  await server.close();
  return error ?? message.replace(/^Get "[^"]*": /, "");
}

/** Servers that Go's client tells apart (`bad-servers.test.ts`), in rows of one report of `node:http2`. */
const INDISTINCT: readonly (readonly [
  fault: string,
  texts: Readonly<Partial<Record<Misbehaviour, string>>>,
])[] = [
  [
    "what is no HTTP/2",
    {
      "answers garbage": "http2: frame too large",
      "answers 404":
        "http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP/1.1 header",
      "begins HTTP/2 without SETTINGS": "connection error: PROTOCOL_ERROR",
    },
  ],
  [
    "the end without an answer",
    {
      "closes after an HTTP/2 request": "unexpected EOF",
      "resets the stream with CANCEL": "stream error: stream ID 1; CANCEL; received from peer",
    },
  ],
  [
    "the end in mid-body",
    {
      "ends its body early over HTTP/2": "unexpected EOF",
      "resets in its body over HTTP/2": "stream error: stream ID 1; CANCEL; received from peer",
    },
  ],
  [
    // Node 20 reports nothing at all of these: nghttp2 sends its GOAWAY and reads no more.
    "a frame that ends the connection",
    {
      "announces a frame too large": "http2: frame too large",
      "sends a header block that is none": "connection error: COMPRESSION_ERROR",
      "sends data before its head": "stream error: stream ID 1; PROTOCOL_ERROR",
    },
  ],
];

describe("what node:http2 can't tell a probe", () => {
  it.each(INDISTINCT)("%s", async (_, texts) => {
    const names = Object.keys(texts) as Misbehaviour[];
    const ours = await Promise.all(names.map(async (name) => [name, await reportOfOurs(name)]));
    expect(Object.fromEntries(ours)).toEqual(texts);
    const ofNode = await Promise.all(names.map((name) => reportOfNode(name)));
    expect(ofNode).toEqual(ofNode.map(() => ofNode[0]));
  });
});
