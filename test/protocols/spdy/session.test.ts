import { describe, expect, it } from "vitest";
import { SpdySession } from "../../../protocols/spdy/index.ts";

describe("smoke", () => {
  it("echoes", () => {
    const got: string[] = [];
    const server: SpdySession = new SpdySession("server", {
      send: (b) => client.receive(b),
      onStream: (s) => ({
        onData(p, fin) {
          s.write(p);
          if (fin) s.finish();
        },
        onEnd() {},
      }),
    });
    const client: SpdySession = new SpdySession("client", {
      send: (b) => server.receive(b),
      onStream: () => 3,
    });
    const s = client.openStream([["streamtype", "stdin"]], {
      onData(p, fin) {
        got.push(new TextDecoder().decode(p) + fin);
      },
      onEnd() {},
    });
    s.write(new TextEncoder().encode("hi"));
    s.finish();
    expect(got).toEqual(["hifalse", "true"]);
    expect(client.openStreamCount + server.openStreamCount).toBe(0);
  });
});
