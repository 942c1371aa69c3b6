import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
} from "node:http2";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { CHANNEL } from "@sluice/protocols/remotecommand";
import { LINE_BYTES, LineSequence } from "../load/seeded-stream.ts";
import type { CaseLab } from "./case-lab.ts";
import { costCases } from "./cases/cost-cases.ts";
import { errorCases } from "./cases/error-cases.ts";
import { execCases } from "./cases/exec-cases.ts";
import { framingCases } from "./cases/framing-cases.ts";
import { headerCases } from "./cases/header-cases.ts";
import { idleCases } from "./cases/idle-cases.ts";
import { legacyCases } from "./cases/legacy-cases.ts";
import { negotiationCases } from "./cases/negotiation-cases.ts";
import { portForwardCases } from "./cases/port-forward-cases.ts";
import { sessionCases } from "./cases/session-cases.ts";
import { slowReaderCases } from "./cases/slow-reader-cases.ts";
import { terminalCases } from "./cases/terminal-cases.ts";
import { CASE_GROUPS, type ConformanceCase, onEach } from "./conformance-case.ts";
import type { CommandSessionRequest, SessionPlace } from "./endpoint.ts";
import { COMMAND_TRANSPORTS, OFFERS } from "./endpoint.ts";
import { expectBytes, expectExit, expectStatus, expectText, SkippedCase, Violation } from "./judge.ts";
import { RawWebSocket } from "./raw-websocket.ts";

const ECHO: CommandSessionRequest = {
  kind: "exec",
  command: ["sh", "-c", "echo over HTTP/2"],
  streams: { stdin: false, stdout: true, stderr: false, tty: false },
};

async function connectHttp2(lab: CaseLab, { target }: SessionPlace): Promise<ClientHttp2Session> {
  const { host, port, tls } = target.endpoint;
  if (tls === undefined) throw new SkippedCase("without TLS there is no ALPN");
  if (target.proxy !== undefined) throw new SkippedCase("the endpoint is behind a forward proxy");
  const socket: TLSSocket = connectTls({
    ...tls.connectOptions(host, port),
    host,
    port,
    ALPNProtocols: ["h2", "http/1.1"],
  });
  lab.onClose(() => socket.destroy());
  await lab.within("a TLS connection", once(socket, "secureConnect"));
  if (socket.alpnProtocol !== "h2") throw new SkippedCase("the endpoint does not offer HTTP/2");
  const session = connect(target.url.origin, { createConnection: () => socket });
  session.on("error", () => {});
  lab.onClose(() => session.destroy());
  await lab.within("the SETTINGS of the server", once(session, "remoteSettings"));
  return session;
}

const http2Cases: readonly ConformanceCase[] = [
  {
    id: "http2/extended-connect",
    group: "http2",
    requirement: "An endpoint that allows WebSockets on HTTP/2 streams carries exec on one.",
    why: "Browsers use HTTP/2 as soon as it is allowed, and do not go back.",
    source: "RFC 8441 sections 3 to 5; kgateway #14305",
    severity: "should",
    needs: ["sh"],
    run: async (lab) => {
      const place = await lab.endpoint.placeOf(ECHO);
      const session = await connectHttp2(lab, place);
      if (session.remoteSettings.enableConnectProtocol !== true)
        throw new SkippedCase("HTTP/2 is offered without extended CONNECT, so that browsers use HTTP/1.1");
      const own = (await place.target.headers()).map(([name, value]): [string, string] => [
        name.toLowerCase(),
        value,
      ]);
      const stream: ClientHttp2Stream = session.request(
        {
          ...Object.fromEntries(own),
          ":method": "CONNECT",
          ":protocol": "websocket",
          ":path": place.target.pathOf(place.path),
          "sec-websocket-version": "13",
          "sec-websocket-protocol": "v5.channel.k8s.io",
        },
        { endStream: false },
      );
      stream.on("error", () => {});
      const gone = once(stream, "close").then(() => undefined);
      const answered = once(stream, "response") as Promise<[IncomingHttpHeaders]>;
      const answer = await lab.within("the answer to CONNECT", Promise.race([answered, gone]));
      if (answer === undefined) throw new Violation(`the stream was reset with ${stream.rstCode}`);
      const [headers] = answer;
      if (headers[":status"] !== (200 as unknown))
        throw new Violation(`CONNECT was answered with ${headers[":status"]}`);
      expectText("the subprotocol", String(headers["sec-websocket-protocol"]), "v5.channel.k8s.io");
      const webSocket = new RawWebSocket(stream, Buffer.alloc(0));
      const { code } = await lab.within("the end of the session", webSocket.ended);
      const output = webSocket.messages
        .filter(({ bytes }) => bytes[0] === CHANNEL.STDOUT)
        .map(({ bytes }) => bytes.subarray(1).toString())
        .join("");
      expectText("stdout", output, "over HTTP/2\n");
      if (code !== 1000)
        throw new Violation(`ended with ${code === undefined ? "no Close frame" : `Close ${code}`}`);
    },
  },
];

const PROMPT_MS = 3_000;
const ROUNDS = 5;
const LAST_BYTES = LINE_BYTES * 30_000;
const UNREAD_BYTES = 2 * 1024 * 1024;

const closingCases: readonly ConformanceCase[] = [
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

/** Every case, by group in the order of CASE_GROUPS. */
export const ALL_CASES: readonly ConformanceCase[] = [
  ...negotiationCases,
  ...headerCases,
  ...errorCases,
  ...execCases,
  ...terminalCases,
  ...portForwardCases,
  ...legacyCases,
  ...framingCases,
  ...closingCases,
  ...slowReaderCases,
  ...sessionCases,
  ...http2Cases,
  ...idleCases,
  ...costCases,
].toSorted((one, other) => CASE_GROUPS.indexOf(one.group) - CASE_GROUPS.indexOf(other.group));
