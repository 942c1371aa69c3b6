import { CHANNEL, decodeStatus } from "@sluice/protocols/remotecommand";
import { LINE_BYTES, LineSequence, SeededStream } from "../../load/seeded-stream.ts";
import type { CaseLab } from "../case-lab.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { OFFERS } from "../endpoint.ts";
import { expectBytes, expectStatus, Violation } from "../judge.ts";
import { RawWebSocket } from "../raw-websocket.ts";
import { RecordedOutput } from "../recorded-output.ts";

const OUTPUT_BYTES = LINE_BYTES * 100_000;
const LARGE_MESSAGE_BYTES = 1024 * 1024;
const SMALL_MESSAGES = 1_000;
const SEED = 31;

async function openRaw(lab: CaseLab, command: readonly string[], stdin: boolean): Promise<RawWebSocket> {
  const streams = { stdin, stdout: true, stderr: true, tty: false };
  const { socket, head } = await lab.dial({ kind: "exec", command, streams }, OFFERS["websocket-v5"]);
  return new RawWebSocket(socket, head);
}

export const framingCases: readonly ConformanceCase[] = [
  {
    id: "framing/server-messages",
    group: "framing",
    requirement: "Every message of the server is binary, not empty, and begins with a channel.",
    why: "client-go ends the session at an empty or text message, and drops bytes behind an unknown channel.",
    source: "client-go TestWebSocketClient_TextMessageTypeError, _EmptyMessageHandled; RFC 6455 section 5.4",
    severity: "must",
    needs: ["seq"],
    transport: "websocket-v5",
    run: async (lab) => {
      const webSocket = await openRaw(lab, LineSequence.command(OUTPUT_BYTES), false);
      const { problem } = await lab.within("the end of the session", webSocket.ended);
      if (problem !== undefined) throw new Violation(`the server's frames are malformed: ${problem}`);
      const output = new RecordedOutput(new LineSequence());
      for (const [index, { isText, bytes }] of webSocket.messages.entries()) {
        const [channel] = bytes;
        if (isText) throw new Violation(`message ${index + 1} is text`);
        if (channel === undefined) throw new Violation(`message ${index + 1} is empty`);
        if (channel !== CHANNEL.STDOUT && channel !== CHANNEL.STDERR && channel !== CHANNEL.ERROR)
          throw new Violation(`message ${index + 1} begins with ${channel}, which is not an output channel`);
        if (channel === CHANNEL.STDOUT) output.add(bytes.subarray(1));
        if (
          channel === CHANNEL.ERROR &&
          bytes.byteLength > 1 &&
          decodeStatus(bytes.subarray(1)) === undefined
        )
          throw new Violation("the message on the error channel is not a Status");
      }
      expectBytes("the output", output, OUTPUT_BYTES);
    },
  },
  {
    id: "framing/large-message",
    group: "framing",
    requirement: "A client's message of 1 MiB in one frame passes.",
    why: "Clients for Python and JavaScript send what they read in one frame; hops close with 1009.",
    source: "golang.org/x/net/websocket (32 MiB); kubernetes-client/java #1311",
    severity: "should",
    needs: ["cat"],
    transport: "websocket-v5",
    run: async (lab) => {
      const sent = new SeededStream(SEED, 0).bytes(0, LARGE_MESSAGE_BYTES);
      const webSocket = await openRaw(lab, ["cat"], true);
      webSocket.send(Buffer.concat([Buffer.of(CHANNEL.STDIN), sent]));
      webSocket.send(Buffer.of(CHANNEL.CLOSE, CHANNEL.STDIN));
      const { code } = await lab.within("the end of the session", webSocket.ended);
      const output = new RecordedOutput(new SeededStream(SEED, 0));
      for (const { bytes } of webSocket.messages)
        if (bytes[0] === CHANNEL.STDOUT) output.add(bytes.subarray(1));
      expectBytes(`what came back (Close ${code ?? "missing"})`, output, LARGE_MESSAGE_BYTES);
    },
  },
  {
    id: "framing/small-messages",
    group: "framing",
    requirement: `${SMALL_MESSAGES} messages of one byte each pass in order.`,
    why: "Terminals send one message for each key.",
    source: "client-go TestWebSocketClient_DifferentBufferSizes; tailscale #16678",
    severity: "must",
    needs: ["cat"],
    transport: "websocket-v5",
    run: async (lab) => {
      const check = new SeededStream(SEED, 1);
      const session = await lab.command("websocket-v5", ["cat"], { stdin: true, check });
      const sent = check.bytes(0, SMALL_MESSAGES);
      for (let at = 0; at < SMALL_MESSAGES; at++) await session.write(sent.subarray(at, at + 1));
      session.endInput();
      const result = await lab.within("the end of the session", session.ended);
      expectBytes("what came back", session.stdout, SMALL_MESSAGES);
      expectStatus(result, 0);
    },
  },
];
