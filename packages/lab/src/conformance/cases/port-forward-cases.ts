import { once } from "node:events";
import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { ForwardedStream, PortForwardConnection } from "@sluice/client";
import { SeededStream } from "../../load/seeded-stream.ts";
import type { CaseLab } from "../case-lab.ts";
import { type ConformanceCase, onEach } from "../conformance-case.ts";
import { FORWARD_TRANSPORTS } from "../endpoint.ts";
import { expectBytes, ReadPace, Violation } from "../judge.ts";
import { RecordedOutput } from "../recorded-output.ts";

const SEED = 29;
const MIB = 1024 * 1024;
const PARALLEL = 20;
const SHORT_CONNECTIONS = 200;
const SHORT_AT_ONCE = 10;
/** The port of tcpmux, on which containers do not listen. */
const CLOSED_PORT = 1;
const CHUNK_BYTES = 64 * 1024;

/** A connection to this port of the pod, by default the echo port. */
export function openForwarded(
  lab: CaseLab,
  connection: PortForwardConnection,
  port = lab.settings.echoPort ?? 0,
): ForwardedStream {
  const stream = connection.openStream(port);
  // The end of the case also ends the stream.
  stream.on("error", () => {});
  return stream;
}

interface EchoOptions {
  /** Bytes to read per second; by default as fast as they arrive. */
  readonly readRate?: number | undefined;
  /** How long nothing is read at first. */
  readonly stallMs?: number | undefined;
  /**
   * The client ends its side only when everything has returned: a runtime may wait no more than a
   * second after that.
   */
  readonly endsLast?: boolean | undefined;
  readonly timeoutMs?: number | undefined;
}

/** Sends this many bytes and an end, and expects every byte and the end back. */
export async function echo(
  lab: CaseLab,
  connection: PortForwardConnection,
  index: number,
  byteLength: number,
  { readRate, stallMs = 0, endsLast = false, timeoutMs = 3 * lab.settings.stepTimeoutMs }: EchoOptions = {},
): Promise<void> {
  const seeded = new SeededStream(SEED, index);
  const output = new RecordedOutput(seeded);
  const stream = openForwarded(lab, connection);
  const pace = readRate === undefined ? undefined : new ReadPace(readRate, stream);
  const read = (part: Buffer): void => {
    output.add(part);
    pace?.read(part.byteLength);
    if (endsLast && output.byteLength >= byteLength) stream.end();
  };
  const chunks = function* (): Generator<Buffer> {
    for (let at = 0; at < byteLength; at += CHUNK_BYTES) {
      yield seeded.bytes(at, Math.min(CHUNK_BYTES, byteLength - at));
    }
  };
  Readable.from(chunks()).pipe(stream, { end: !endsLast });
  const ended = lab.within("the end behind the client's end", finished(stream), timeoutMs);
  ended.catch(() => {});
  if (stallMs > 0) await delay(stallMs);
  stream.on("data", read);
  await ended;
  expectBytes(`connection ${index + 1}`, output, byteLength);
}

/** Waits for the end of one connection, whatever the session does. */
export function endOf(stream: ForwardedStream): Promise<Error | undefined> {
  return finished(stream).then(
    () => undefined,
    (error: Error) => error,
  );
}

/** Sends one line and expects it back, while both directions stay open. */
export async function talk(lab: CaseLab, stream: ForwardedStream, word: string): Promise<void> {
  const output = new RecordedOutput();
  const onData = (part: Buffer): void => output.add(part);
  stream.on("data", onData);
  stream.write(word);
  const echoed = output.until(({ byteLength }) => byteLength >= word.length);
  const ended = endOf(stream).then((error) => {
    throw new Violation(`the connection ended: ${error?.message ?? "closed"}`);
  });
  await lab.within("the echo", Promise.race([echoed, ended]));
  stream.off("data", onData);
  if (output.text !== word) throw new Violation(`sent ${word}, ${JSON.stringify(output.text)} came back`);
}

export const portForwardCases: readonly ConformanceCase[] = [
  ...onEach(FORWARD_TRANSPORTS, "port-forward", {
    name: "interactive",
    requirement: "Each message is answered while the connection is open.",
    why: "Protocols with questions and answers hang: databases, HTTP keep-alive.",
    source: "client-go portforward TestHandleConnection",
    severity: "must",
    needs: [],
    needsEcho: true,
    run: async (lab, transport) => {
      const stream = openForwarded(lab, await lab.forward(transport));
      for (const word of ["one", "two", "three"]) await talk(lab, stream, word);
      stream.destroy();
    },
  }),
  ...onEach(FORWARD_TRANSPORTS, "port-forward", {
    name: "half-close",
    requirement: "The end of the client's bytes reaches the server, and the rest of its answer comes back.",
    why: "Answers are cut; servers that wait for the end hang.",
    source: "moby/spdystream TestHalfClose; kubernetes #74551",
    severity: "must",
    needs: [],
    needsEcho: true,
    run: async (lab, transport) => echo(lab, await lab.forward(transport), 0, 4 * MIB),
  }),
  ...onEach(FORWARD_TRANSPORTS, "port-forward", {
    name: "parallel",
    requirement: `${PARALLEL} connections share a session, and their bytes do not mix.`,
    why: "Pages load partly; connection pools hang.",
    source: "kubernetes #120889; openshift/origin #4287",
    severity: "must",
    needs: [],
    needsEcho: true,
    run: async (lab, transport) => {
      const connection = await lab.forward(transport);
      await Promise.all(
        Array.from({ length: PARALLEL }, (_, index) => echo(lab, connection, index, MIB / 4)),
      );
    },
  }),
  ...onEach(FORWARD_TRANSPORTS, "port-forward", {
    name: "short-connections",
    requirement: `${SHORT_CONNECTIONS} short connections, ${SHORT_AT_ONCE} at a time, pass through one session.`,
    why: "Each HTTP request is one; sessions that leak streams stop after some of them.",
    source: "kubernetes #74551, #120889",
    severity: "must",
    needs: [],
    needsEcho: true,
    run: async (lab, transport) => {
      const connection = await lab.forward(transport);
      for (let done = 0; done < SHORT_CONNECTIONS; done += SHORT_AT_ONCE) {
        await Promise.all(
          Array.from({ length: SHORT_AT_ONCE }, (_, index) => echo(lab, connection, done + index, 100)),
        );
      }
    },
  }),
  ...onEach(FORWARD_TRANSPORTS, "port-forward", {
    name: "refused-port",
    requirement: "A port on which nothing listens fails with a reason, and the other connections go on.",
    why: "One failed connection ends all, or hangs.",
    source: "client-go portforward TestHandleConnectionSendsRemoteError; kubernetes #74551",
    severity: "must",
    needs: [],
    needsEcho: true,
    run: async (lab, transport) => {
      const connection = await lab.forward(transport);
      const other = openForwarded(lab, connection);
      await talk(lab, other, "before");
      const refused = openForwarded(lab, connection, CLOSED_PORT);
      const failed = once(refused, "error").then(([error]: Error[]) => error?.message ?? "");
      const ended = finished(refused).then(
        () => "",
        () => failed,
      );
      refused.resume().end();
      const reason = await lab.within("the refusal of a closed port", ended);
      if (reason === "") throw new Violation("a closed port was reported as an ordinary end");
      await talk(lab, other, "after");
    },
  }),
];
