import { SessionClock } from "../../../packages/client/src/net/session-clock.ts";
import { WebSocketConnection } from "../../../packages/client/src/sessions/websocket-connection.ts";
import { SpdySession, type SpdyStream } from "../../../protocols/spdy/index.ts";
import { defaultWebSocketLimits } from "../../../protocols/websocket/index.ts";
import { switchingWebSocket } from "../../support/client/switching.ts";
import { listenRaw } from "../../support/http/loopback.ts";
import type { KubeletScript, KubeletSession } from "../../support/scripted-kubelet.ts";

export interface TunnelServer {
  readonly port: number;
  readonly sessions: WebSocketConnection[];
  /** Of the clients' Close frames. */
  readonly closeCodes: number[];
  close(): Promise<void>;
}

/** A server of port-forward tunnels whose SPDY side follows a kubelet's script. */
export async function startTunnelServer(script: KubeletScript): Promise<TunnelServer> {
  const sessions: WebSocketConnection[] = [];
  const closeCodes: number[] = [];
  const clock = new SessionClock();
  const server = await listenRaw(
    switchingWebSocket("SPDY/3.1+portforward.k8s.io", undefined, (socket) => {
      const streams = new Map<string, SpdyStream>();
      const session = { streams } as unknown as KubeletSession;
      const webSocket = new WebSocketConnection(
        socket,
        {
          onMessage: (part) => spdy.receive(part),
          onEnd: ({ code }) => closeCodes.push(code),
        },
        {
          role: "server",
          limits: defaultWebSocketLimits,
          lingerTimes: { lingerIdleMs: 1_000, lingerMaxMs: 1_000 },
          clock,
          pingIntervalMs: 20_000,
          pongIntervalMs: 20_000,
        },
      );
      const spdy = new SpdySession("server", {
        send: (bytes) => webSocket.sendMessage(undefined, bytes),
        onStream: (stream) => {
          const name = `${stream.headers.get("streamtype")}${stream.headers.get("requestid")}`;
          streams.set(name, stream);
          return {
            onData: (part, fin) => script.onData?.(name, part, fin, session),
            onEnd: () => {},
          };
        },
      });
      socket.on("data", (chunk) => webSocket.receive(chunk));
      sessions.push(webSocket);
    }),
  );
  return { port: server.port, sessions, closeCodes, close: server.close };
}
