import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { defaultSpdyLimits, FrameDecoder, SpdySession } from "../../../../protocols/spdy/index.ts";

interface Capture {
  readonly name: string;
  readonly source: string;
  readonly fromClient: string;
  readonly fromServer: string;
}

const captures: Capture[] = JSON.parse(readFileSync(path.join(import.meta.dirname, "captures.json"), "utf8"));
const STREAM_TYPES = ["error", "stdin", "stdout", "stderr"];

/** What one direction says: control frames in short, payload and FIN by stream. */
function said(pieces: readonly Uint8Array[]) {
  const controls: string[] = [];
  const payload: Record<number, string> = {};
  const fins: number[] = [];
  const decoder = new FrameDecoder(
    {
      onData: (id, part, fin) => {
        payload[id] = (payload[id] ?? "") + Buffer.from(part).toString();
        if (fin) fins.push(id);
      },
      onControl: (frame) => {
        const headers = "headers" in frame ? [...frame.headers].join() : "";
        controls.push([frame.type, "streamId" in frame ? frame.streamId : "", headers].join(" ").trim());
      },
    },
    defaultSpdyLimits,
  );
  for (const piece of pieces) decoder.push(piece);
  return { controls, payload, fins, isBetweenFrames: decoder.isBetweenFrames };
}

describe.each(captures)("$name", ({ fromClient, fromServer }) => {
  const client = Buffer.from(fromClient, "hex");
  const server = Buffer.from(fromServer, "hex");

  it("the client's side: four streams in client-go's order, stdin and its end", () => {
    const { controls, payload, fins, isBetweenFrames } = said([Uint8Array.from(client)]);
    const opened = controls.filter((control) => control.startsWith("SYN_STREAM"));
    expect(opened).toEqual(
      STREAM_TYPES.map((type, index) => `SYN_STREAM ${2 * index + 1} streamtype,${type}`),
    );
    expect(payload[3]).toBe("hello\n");
    expect(fins).toContain(3);
    expect(isBetweenFrames).toBe(true);
  });

  it("the runtime's side: output, status, RST of the error stream, GOAWAY", () => {
    const { controls, payload } = said([Uint8Array.from(server)]);
    expect(payload).toMatchObject({ 5: "hello\n", 7: "err\n" });
    expect(JSON.parse(payload[1] ?? "")).toMatchObject({ status: "Failure", reason: "NonZeroExitCode" });
    for (const id of [1, 3, 5, 7]) expect(controls).toContain(`SYN_REPLY ${id}`);
    expect(controls).toContain("RST_STREAM 1");
    expect(controls.some((control) => control.startsWith("GOAWAY"))).toBe(true);
  });

  it("says the same when it is cut at any byte", () => {
    for (const wire of [client, server]) {
      const whole = said([Uint8Array.from(wire)]);
      for (let at = 1; at < wire.length; at++) {
        expect(said([Uint8Array.from(wire.subarray(0, at)), Uint8Array.from(wire.subarray(at))])).toEqual(
          whole,
        );
      }
    }
  });

  it("drives a session of each role to its end", () => {
    const output: string[] = [];
    const runtime = new SpdySession("server", {
      send: () => {},
      onStream: (stream) => {
        const type = stream.headers.get("streamtype");
        return {
          onData: (part, fin) => void output.push(`${type} ${Buffer.from(part)}${fin ? "$" : ""}`),
          onEnd: () => {},
        };
      },
    });
    runtime.receive(Uint8Array.from(client));
    expect(output.join("").replace("stdin $", "$")).toBe("stdin hello\n$");

    const ends: string[] = [];
    const kubectl = new SpdySession("client", { send: () => {}, onStream: () => 3 });
    for (const type of STREAM_TYPES) {
      kubectl.openStream([["streamtype", type]], {
        onData: (_part, fin) => void (fin && ends.push(type)),
        onEnd: () => void ends.push(type),
      });
    }
    kubectl.receive(Uint8Array.from(server));
    expect(ends.sort()).toEqual([...STREAM_TYPES].sort());
    expect(kubectl.isOver).toBe(true);
  });
});
