import { LINE_BYTES, LineSequence } from "../../load/index.ts";
import { type ConformanceCase, onEach } from "../conformance-case.ts";
import { expectBytes, expectExit, expectStatus, expectText } from "../judge.ts";
import { RawWebSocket } from "../raw-websocket.ts";
import { COMMAND_TRANSPORTS, OFFERS } from "../transports.ts";
import { Violation } from "../violation.ts";

const PROMPT_MS = 3_000;
const ROUNDS = 5;
const LAST_BYTES = LINE_BYTES * 30_000;
const UNREAD_BYTES = 2 * 1024 * 1024;

export const closingCases: readonly ConformanceCase[] = [
  ...onEach(COMMAND_TRANSPORTS, "closing", {
    name: "proper-end",
    requirement:
      "After the status the session ends properly and promptly: a WebSocket with Close 1000, SPDY with ended streams.",
    why: "client-go reports an error for any other end, although the command succeeded; users wait for the prompt.",
    source: "client-go websocket.go (close 1000 alone is EOF); RFC 6455 section 7.1.1",
    severity: "must",
    needs: ["sh"],
    run: async (lab, transport) => {
      const session = await lab.shell(transport, "echo out; exit 3");
      const result = await lab.within("the end of the session", session.ended);
      expectExit(result, 3);
      const { closeDelayMs = 0 } = result;
      if (closeDelayMs > PROMPT_MS)
        throw new Violation(`the session stayed open for ${Math.round(closeDelayMs)} ms after the status`);
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "closing", {
    name: "last-output",
    requirement: "What a command wrote just before it ended arrives, each time.",
    why: "The tails of logs and archives are missing, sometimes with exit code 0.",
    source: "kubernetes #142376, #124571, #131189",
    severity: "must",
    needs: ["seq"],
    run: async (lab, transport) => {
      for (let round = 1; round <= ROUNDS; round++) {
        const check = new LineSequence();
        const session = await lab.command(transport, LineSequence.command(LAST_BYTES), { check });
        const result = await lab.within("the end of the session", session.ended);
        expectBytes(`the output in round ${round}`, session.stdout, LAST_BYTES);
        expectStatus(result, 0);
      }
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "closing", {
    name: "unread-input",
    requirement: "A command that ends before it has read its input still reports its output and its code.",
    why: "Pipes into head, grep -q or a failing program end with a broken connection instead of the result.",
    source: "kubernetes #142376 (a close with unread input resets the connection); containerd #13934",
    severity: "must",
    needs: ["sh"],
    run: async (lab, transport) => {
      const session = await lab.shell(transport, "read line; echo $line; exit 4", { stdin: true });
      await lab.within("input that is not read", session.write(Buffer.alloc(UNREAD_BYTES, "line\n")));
      const result = await lab.within("the end of the session", session.ended);
      expectText("stdout", session.stdout.text, "line\n");
      expectStatus(result, 4);
    },
  }),
  {
    id: "closing/client-close",
    group: "closing",
    requirement: "A client's Close is answered, and the connection ends.",
    why: "Sessions that clients have left pile up.",
    source: "RFC 6455 section 5.5.1; golang.org/x/net/websocket",
    severity: "must",
    needs: ["cat"],
    transport: "websocket-v5",
    run: async (lab) => {
      const streams = { stdin: true, stdout: true, stderr: false, tty: false };
      const { socket, head } = await lab.dial(
        { kind: "exec", command: ["cat"], streams },
        OFFERS["websocket-v5"],
      );
      const webSocket = new RawWebSocket(socket, head);
      webSocket.sendClose(1000);
      await lab.within("the end of the connection after the client's Close", webSocket.ended);
    },
  },
];
