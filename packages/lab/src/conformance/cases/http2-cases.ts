import { once } from "node:events";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type IncomingHttpHeaders,
} from "node:http2";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { CHANNEL } from "@sluice/protocols/remotecommand";
import type { CaseLab } from "../case-lab.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import type { CommandSessionRequest, SessionPlace } from "../endpoint.ts";
import { expectText } from "../judge.ts";
import { RawWebSocket } from "../raw-websocket.ts";
import { SkippedCase, Violation } from "../violation.ts";

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

export const http2Cases: readonly ConformanceCase[] = [
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
