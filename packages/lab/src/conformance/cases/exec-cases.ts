import { LINE_BYTES, LineSequence, SeededStream } from "../../load/seeded-stream.ts";
import type { CaseLab } from "../case-lab.ts";
import { type ConformanceCase, onEach } from "../conformance-case.ts";
import { COMMAND_TRANSPORTS, type CommandTransport } from "../endpoint.ts";
import { expectBytes, expectStatus, expectText, Violation } from "../judge.ts";

/** WebSockets before v5 cannot end a command's input (kubernetes #89899). */
const HALF_CLOSING: readonly CommandTransport[] = ["websocket-v5", "spdy"];
const EVERY_BYTE = Buffer.from(Array.from({ length: 256 * 256 }, (_, index) => index & 0xff));
const WRITE_BYTES = 256 * 1024;
const SEED = 17;

/** Runs a script without input, and expects its exit code. */
async function outputOf(
  lab: CaseLab,
  transport: CommandTransport,
  script: string,
  code = 0,
): Promise<string> {
  const session = await lab.shell(transport, script);
  expectStatus(await lab.within("the end of the session", session.ended), code);
  return session.stdout.text;
}

/** Sends this many seeded bytes through `cat`, and checks each byte that returns. */
async function echoThroughCat(lab: CaseLab, transport: CommandTransport, byteLength: number): Promise<void> {
  const stream = new SeededStream(SEED, 0);
  const session = await lab.command(transport, ["cat"], { stdin: true, check: stream });
  for (let sent = 0; sent < byteLength && !session.isOver; sent += WRITE_BYTES) {
    await session.write(stream.bytes(sent, Math.min(WRITE_BYTES, byteLength - sent)));
  }
  session.endInput();
  const result = await session.ended;
  expectBytes("what came back", session.stdout, byteLength);
  expectStatus(result, 0);
}

export const execCases: readonly ConformanceCase[] = [
  ...onEach(COMMAND_TRANSPORTS, "exec", {
    name: "stdout",
    requirement: "A command's output arrives whole, with a success status.",
    why: "Scripts take a missing status for success.",
    source: "client-go remotecommand TestSPDYExecutorStream, TestWebSocketClient_LoopbackStdinToStdout",
    severity: "must",
    needs: ["sh"],
    run: async (lab, transport) =>
      expectText("stdout", await outputOf(lab, transport, "echo hello"), "hello\n"),
  }),
  ...onEach(COMMAND_TRANSPORTS, "exec", {
    name: "exit-codes",
    requirement: "Exit codes 1, 7, 137 and 255 arrive as they are.",
    why: "CI jobs pass although their command failed.",
    source: "KEP-4006; client-go TestSPDYExecutorNonZeroExitCode, TestV4ErrorDecoder",
    severity: "must",
    needs: ["sh"],
    run: async (lab, transport) => {
      for (const code of [1, 7, 137, 255]) await outputOf(lab, transport, `exit ${code}`, code);
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "exec", {
    name: "stderr-separate",
    requirement: "stdout and stderr stay separate.",
    why: "Pipelines read warnings as data; kubectl cp unpacks them as an archive.",
    source: "client-go TestWebSocketClient_MultipleReadChannels",
    severity: "must",
    needs: ["sh"],
    run: async (lab, transport) => {
      const session = await lab.shell(transport, "echo out; echo err >&2; echo out2", { stderr: true });
      expectStatus(await lab.within("the end of the session", session.ended), 0);
      expectText("stdout", session.stdout.text, "out\nout2\n");
      expectText("stderr", session.stderr.text, "err\n");
    },
  }),
  ...onEach(HALF_CLOSING, "exec", {
    name: "stdin-half-close",
    requirement: "The end of stdin reaches the command, and its output still comes back.",
    why: "Pipes into kubectl exec, and uploads of kubectl cp, hang.",
    source:
      "KEP-4006 (CLOSE signal of v5); kubernetes #89899; client-go TestWebSocketClient_LoopbackStdinAsPipe",
    severity: "must",
    needs: ["sh", "cat"],
    run: async (lab, transport) => {
      const session = await lab.shell(transport, "cat; echo end", { stdin: true });
      await session.write("one\ntwo\n");
      session.endInput();
      expectStatus(await lab.within("the end of the session after the end of stdin", session.ended), 0);
      expectText("stdout", session.stdout.text, "one\ntwo\nend\n");
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "exec", {
    name: "interactive",
    requirement: "Each line of input is answered while the session is open.",
    why: "Shells seem to hang if a hop holds bytes back until a buffer is full.",
    source: "kubernetes #7452; nginx proxy_buffering, proxy_request_buffering",
    severity: "must",
    needs: ["sh"],
    run: async (lab, transport) => {
      const session = await lab.shell(transport, 'while read line; do echo "got $line"; done', {
        stdin: true,
      });
      let expected = "";
      for (const word of ["one", "two", "three"]) {
        await session.write(`${word}\n`);
        expected += `got ${word}\n`;
        const answered = session.stdout.until(({ byteLength }) => byteLength >= expected.length);
        await lab.within(`the answer to ${JSON.stringify(word)}`, Promise.race([answered, session.ended]));
        expectText("stdout", session.stdout.text, expected);
      }
    },
  }),
  ...onEach(HALF_CLOSING, "exec", {
    name: "binary",
    requirement: "Every byte value passes unchanged in both directions.",
    why: "Archives and images arrive broken if a hop treats the stream as text.",
    source: "client-go TestStreamRandomData; RFC 6455 section 5.6",
    severity: "must",
    needs: ["cat"],
    run: async (lab, transport) => {
      const session = await lab.command(transport, ["cat"], { stdin: true });
      await session.write(EVERY_BYTE);
      session.endInput();
      const result = await lab.within("the end of the session", session.ended);
      const at = session.stdout.bytes.findIndex((byte, index) => byte !== EVERY_BYTE[index]);
      if (at !== -1) {
        const [got, sent] = [session.stdout.bytes[at], EVERY_BYTE[at]];
        throw new Violation(`the byte at offset ${at} came back as ${got}, not as ${sent}`);
      }
      expectBytes("what came back", session.stdout, EVERY_BYTE.byteLength);
      expectStatus(result, 0);
    },
  }),
  ...onEach(HALF_CLOSING, "exec", {
    name: "empty",
    requirement: "A session without a single byte, either way, ends with success.",
    why: "Commands that print nothing hang or fail.",
    source: "KEP-4006; client-go TestWebSocketClient_EmptyMessageHandled",
    severity: "must",
    needs: ["cat"],
    run: async (lab, transport) => {
      const session = await lab.command(transport, ["cat"], { stdin: true, stderr: true });
      session.endInput();
      expectStatus(await lab.within("the end of the session", session.ended), 0);
      expectText("stdout", session.stdout.text, "");
      expectText("stderr", session.stderr.text, "");
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "exec", {
    name: "arguments",
    requirement:
      "Arguments arrive in order and unchanged: equal ones, empty ones, spaces, and characters that URLs encode.",
    why: "Another command runs than the one that was asked for.",
    source: "Kubernetes API, PodExecOptions.command; RFC 3986 section 2.4 (never decode twice)",
    severity: "must",
    needs: ["sh"],
    run: async (lab, transport) => {
      const sent = ["b", "a b", "b", "", "50%25", "x+y&z=1#?", "grüße", '"quoted"', "$HOME"];
      const session = await lab.command(transport, [
        "sh",
        "-c",
        'for one; do echo "[$one]"; done',
        "sh",
        ...sent,
      ]);
      expectStatus(await lab.within("the end of the session", session.ended), 0);
      expectText("what the command received", session.stdout.text, sent.map((one) => `[${one}]\n`).join(""));
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "exec", {
    name: "bulk-download",
    requirement: "A large output arrives whole and in order.",
    why: "kubectl cp and log downloads are cut or corrupted.",
    source: "kubernetes #60140, #124571; client-go TestWebSocketClient_DifferentBufferSizes",
    severity: "must",
    needs: ["seq"],
    run: async (lab, transport) => {
      const byteLength = Math.ceil(lab.settings.bulkBytes / LINE_BYTES) * LINE_BYTES;
      const check = new LineSequence();
      const session = await lab.command(transport, LineSequence.command(byteLength), { check });
      const result = await session.ended;
      expectBytes("the output", session.stdout, byteLength);
      expectStatus(result, 0);
    },
  }),
  ...onEach(HALF_CLOSING, "exec", {
    name: "bulk-echo",
    requirement: "A large input and an equal output pass at the same time, whole and in order.",
    why: "Uploads hang or are cut.",
    source: "kubernetes #112834, containerd #13934; client-go TestStreamRandomData",
    severity: "must",
    needs: ["cat"],
    run: (lab, transport) => echoThroughCat(lab, transport, lab.settings.bulkBytes),
  }),
];
