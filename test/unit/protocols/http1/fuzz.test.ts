import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cut, cutPlaces } from "../../../support/protocols/websocket/generators.ts";
import { Recorder } from "./recorder.ts";

const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/);
const value = fc.stringMatching(/^([!-~\x80-\xff]([ \t!-~\x80-\xff]{0,20}[!-~\x80-\xff])?)?$/);
const framingNames = ["content-length", "transfer-encoding", "connection"];
const leniencies = fc.constantFrom("none" as const, "folded-lines" as const, "as-go" as const);
const lines = fc.array(
  fc.tuple(
    token.filter((name) => !framingNames.includes(name.toLowerCase())),
    value,
  ),
  { maxLength: 6 },
);
const parts = fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 4 });
const write = (fields: readonly (readonly [string, string])[]): string =>
  fields.map(([name, text]) => `${name}: ${text}\r\n`).join("");

/** What a server might send when it is broken, hostile or no HTTP server: pieces of responses in any order, with single bytes changed. */
const hostile = fc
  .tuple(
    fc.array(
      fc.oneof(
        fc.constantFrom(
          "HTTP/1.1 200 OK\r\n",
          "HTTP/1.1 103 X\r\n\r\n",
          "HTTP/1.0 404\r\n",
          "Content-Length: 3\r\n",
          "Content-Length: 4\r\n",
          "Transfer-Encoding: chunked\r\n",
          "Connection: close\r\n",
          "\r\n",
          "\n",
          "\r",
          " folded\r\n",
          "3\r\nabc\r\n",
          "a;x=y\r\n",
          "0\r\n",
          "X-Sum: 1\r\n",
        ),
        fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
      ),
      { maxLength: 12 },
    ),
    fc.constantFrom("", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
  )
  .map(([pieces, start]) => Buffer.from(start + pieces.join(""), "latin1"));

/** Whether the response is whole, or what it is refused for. */
function endOf({ decoder }: Recorder): boolean | string {
  try {
    return decoder.end();
  } catch (error) {
    return String(error);
  }
}

describe("ResponseDecoder under fuzz", () => {
  it("turns any bytes into the same events, refusal and rest, wherever they are cut", () => {
    fc.assert(
      fc.property(
        hostile,
        cutPlaces,
        fc.constantFrom("GET", "HEAD"),
        leniencies,
        (bytes, places, method, leniency) => {
          const whole = new Recorder(method, { leniency }).push(bytes);
          const inParts = new Recorder(method, { leniency });
          for (const part of cut(bytes, places)) inParts.push(Buffer.from(part));
          expect(inParts.events).toEqual(whole.events);
          expect(inParts.surplus).toBe(whole.surplus);
          const isWhole = endOf(whole);
          expect(endOf(inParts)).toBe(isWhole);
          if (whole.refusal !== undefined) expect(isWhole).toBe(false);
          const ends = whole.events.filter(({ type }) => type === "end").length;
          expect(ends).toBe(isWhole === true ? 1 : 0);
        },
      ),
      { numRuns: 3000 },
    );
  });

  it("is told the same by single bytes as by one chunk", () => {
    fc.assert(
      fc.property(hostile, leniencies, (bytes, leniency) => {
        const whole = new Recorder("GET", { leniency }).push(bytes);
        const inBytes = new Recorder("GET", { leniency });
        for (const byte of bytes) inBytes.push(Buffer.of(byte));
        expect(inBytes.events).toEqual(whole.events);
        expect(inBytes.surplus).toBe(whole.surplus);
      }),
      { numRuns: 1000 },
    );
  });

  it("gives back what was written: lines, body and trailers, for each framing", () => {
    const framings = fc.constantFrom("length", "chunked", "until-close");
    fc.assert(
      fc.property(lines, parts, lines, framings, cutPlaces, (fields, body, trailers, framing, places) => {
        const whole = Buffer.concat(body);
        const head = (framed: string): Buffer =>
          Buffer.from(`HTTP/1.1 200 Fine\r\n${write(fields)}${framed}\r\n`, "latin1");
        const chunks = body.flatMap((part) => [
          Buffer.from(`${part.length.toString(16)};a=b\r\n`),
          part,
          Buffer.from("\r\n"),
        ]);
        const wire = {
          length: [head(`Content-Length: ${whole.length}\r\n`), whole],
          chunked: [
            head("Transfer-Encoding: chunked\r\n"),
            ...chunks,
            Buffer.from(`0\r\n${write(trailers)}\r\n`, "latin1"),
          ],
          "until-close": [head(""), whole],
        }[framing];
        const recorder = new Recorder();
        for (const part of cut(Buffer.concat(wire ?? []), places)) recorder.push(Buffer.from(part));
        expect(recorder.decoder.end()).toBe(true);
        const first = recorder.events[0];
        expect(first?.type === "head" && first.head.headers.slice(0, 2 * fields.length)).toEqual(
          fields.flat(),
        );
        expect(recorder.body).toBe(whole.toString("latin1"));
        expect(recorder.events.at(-1)).toEqual({
          type: "end",
          trailers: framing === "chunked" ? trailers.flat() : [],
        });
        expect(recorder.surplus).toBe("");
      }),
      { numRuns: 500 },
    );
  });
});
