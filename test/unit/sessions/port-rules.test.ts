import { describe, expect, it } from "vitest";
import { defaultSpdyLimits, SpdySession } from "../../../protocols/spdy/index.ts";
import { ForwardDecoder } from "../../../src/sessions/decoders/forward-decoder.ts";
import type { SessionObserver } from "../../../src/sessions/observers/session-observer.ts";
import { SessionObservers } from "../../../src/sessions/observers/session-observers.ts";
import { PortRules } from "../../../src/sessions/session-proxy.ts";

/** What a port-forward client sends for these ports: an error and a data stream for each. */
function clientBytes(...ports: string[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  const session = new SpdySession("client", {
    send: (bytes) => chunks.push(Uint8Array.from(bytes)),
    onStream: () => 3,
  });
  const ignore = { onData: () => {}, onEnd: () => {} };
  ports.forEach((port, index) => {
    for (const streamtype of ["error", "data"]) {
      const headers = { streamtype, port, requestid: String(index) };
      const stream = session.openStream(Object.entries(headers), ignore);
      if (streamtype === "data") stream.write(Buffer.from("payload"));
      else stream.finish();
    }
  });
  return chunks;
}

const MALFORMED = Buffer.from("8009000100000001ffffffff", "hex");
const ignored = { clientLeft: () => {}, nodeLeft: () => {} };
const rules = () => new PortRules((port) => (port === 22 ? "no ssh" : undefined));
const decoder = () => new ForwardDecoder(defaultSpdyLimits, new SessionObservers([rules()]), ignored);

describe("port rules", () => {
  it("lets what is allowed pass, however it is split", () => {
    const bytes = Buffer.concat(clientBytes("80", "8080", "23"));
    const whole = decoder();
    expect(whole.fromClient(bytes, () => {})).toBeUndefined();
    const split = decoder();
    for (const byte of bytes) expect(split.fromClient(Uint8Array.of(byte), () => {})).toBeUndefined();
  });

  it("finds the port at whatever byte its stream is complete, and stays with it", () => {
    const bytes = Buffer.concat(clientBytes("80", "22"));
    const split = decoder();
    const answers = Array.from(bytes, (byte) => split.fromClient(Uint8Array.of(byte), () => {})?.message);
    expect(answers.at(-1)).toBe("no ssh");
    expect(answers.indexOf("no ssh")).toBeGreaterThan(bytes.length / 3);
    expect(decoder().fromClient(bytes, () => {})).toMatchObject({ cause: "refused", message: "no ssh" });
  });

  it.each(["022", "22"])("%s is 22 to Go's parser", (port) => {
    expect(decoder().fromClient(Buffer.concat(clientBytes(port)), () => {})?.message).toBe("no ssh");
  });

  it.each([
    "+22",
    " 22",
    "22\u000080",
    "0x16",
    "000022",
    "",
  ])("%j might be another port to the node", (port) => {
    expect(decoder().fromClient(Buffer.concat(clientBytes(port)), () => {})).toMatchObject({
      cause: "refused",
      message: "the port is not a number",
    });
  });

  it("what is no SPDY is refused", () => {
    const end = decoder().fromClient(MALFORMED, () => expect.unreachable());
    expect(end).toMatchObject({ cause: "protocol-error", endedBy: "client" });
  });

  it("what is no SPDY of the node's is refused where both sides are read, for the client's ports are not seen then", () => {
    const seesBoth: SessionObserver = {
      isRequired: false,
      payload: { node: true, input: true, sizes: true },
    };
    const both = new ForwardDecoder(defaultSpdyLimits, new SessionObservers([rules(), seesBoth]), ignored);
    const end = both.fromNode(MALFORMED, () => expect.unreachable());
    expect(end).toMatchObject({ cause: "protocol-error", endedBy: "node" });
    expect(both.fromClient(Buffer.concat(clientBytes("22")), () => expect.unreachable())).toBe(end);
  });
});
