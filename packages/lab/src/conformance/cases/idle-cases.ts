import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { SpdySession } from "@sluice/protocols/spdy";
import type { CaseLab } from "../case-lab.ts";
import { type ConformanceCase, onEach } from "../conformance-case.ts";
import { type CommandTransport, FORWARD_TRANSPORTS, type ForwardTransport, OFFERS } from "../endpoint.ts";
import { type CommandSession, Violation } from "../judge.ts";
import { RawWebSocket } from "../raw-websocket.ts";
import { endOf, openForwarded, talk } from "./port-forward-cases.ts";

const IDLE_SECONDS = [60, 120, 300] as const;
const TRANSPORTS: readonly CommandTransport[] = ["websocket-v5", "spdy"];
const CLIENT_PING_MS = 5_000;
const FORWARD_PING_MS = 10_000;
const NEVER = Number.POSITIVE_INFINITY;
const HEARTBEAT = { pingIntervalMs: 500, deadlineMs: 4_000 };
const CAT = {
  kind: "exec",
  command: ["cat"],
  streams: { stdin: true, stdout: true, stderr: false, tty: false },
} as const;

/** Sends nothing for this time; the session must not end meanwhile. */
async function silence(idleMs: number, ended: Promise<Error | undefined>): Promise<void> {
  const startedMs = performance.now();
  const waited = new AbortController();
  const end = await Promise.race([
    ended.then((error) => error?.message ?? "closed"),
    delay(idleMs, undefined, { ref: false, signal: waited.signal }).catch(() => undefined),
  ]);
  waited.abort();
  if (end === undefined) return;
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
  throw new Violation(`the session ended after ${seconds} s of silence: ${end}`);
}

/** After the silence, a line must still return. */
async function survives(lab: CaseLab, session: CommandSession, idleMs: number): Promise<void> {
  const ended = session.ended.then(({ error }) => error);
  await silence(idleMs, ended);
  await session.write("still there\n");
  const answered = session.stdout.until(({ text }) => text === "still there\n");
  await lab.within("the answer after the silence", answered);
}

/** The same test for one forwarded connection: it must answer before and after the silence. */
async function forwardSurvives(
  lab: CaseLab,
  transport: ForwardTransport,
  idleMs: number,
  forwardPingIntervalMs: number,
): Promise<void> {
  const connection = await lab.forward(transport, { forwardPingIntervalMs, deadlineMs: NEVER });
  const stream = openForwarded(lab, connection);
  await talk(lab, stream, "before");
  await silence(idleMs, Promise.race([connection.ended, endOf(stream)]));
  await talk(lab, stream, "still there");
  stream.destroy();
}

const heartbeatCases: readonly ConformanceCase[] = [
  {
    id: "heartbeat/websocket-pong",
    group: "heartbeat",
    requirement: "A PING is answered by a PONG with the same payload.",
    why: "kubectl ends a session 61 s after the last PONG.",
    source: "RFC 6455 section 5.5.3; client-go TestWebSocketClient_HeartbeatSucceeds",
    severity: "must",
    needs: ["cat"],
    transport: "websocket-v5",
    run: async (lab) => {
      const { socket, head } = await lab.dial(CAT, OFFERS["websocket-v5"]);
      const webSocket = new RawWebSocket(socket, head);
      const payload = "sluice conformance";
      webSocket.ping(payload);
      await lab.within(
        "the PONG",
        webSocket.until(() => webSocket.pongs.length > 0),
      );
      const [pong = ""] = webSocket.pongs;
      if (pong !== payload)
        throw new Violation(`the PONG carries ${JSON.stringify(pong)}, not ${JSON.stringify(payload)}`);
    },
  },
  {
    id: "heartbeat/spdy-ping",
    group: "heartbeat",
    requirement: "A SPDY PING comes back.",
    why: "Clients that watch their connection by PINGs give it up.",
    source: "SPDY/3.1 section 2.6.5; k8s.io/streaming TestConnectionPings",
    severity: "should",
    needs: ["cat"],
    transport: "spdy",
    run: async (lab) => {
      const { socket, head } = await lab.dial(CAT, OFFERS.spdy);
      let onPong: () => void = () => {};
      const answered = new Promise<void>((resolve) => {
        onPong = resolve;
      });
      const spdy = new SpdySession("client", {
        send: (bytes) => void socket.write(bytes),
        onStream: () => 3,
        onPong: () => onPong(),
      });
      socket.on("data", (chunk: Buffer) => spdy.receive(chunk));
      const closed = once(socket, "close").then(() => {
        throw new Violation("the connection was closed");
      });
      closed.catch(() => {});
      for (const type of ["error", "stdin", "stdout"])
        spdy.openStream([["streamtype", type]], { onData: () => {}, onEnd: () => {} });
      socket.resume();
      if (head.byteLength > 0) spdy.receive(head);
      spdy.ping();
      await lab.within("the PING", Promise.race([answered, closed]));
    },
  },
  ...onEach(TRANSPORTS, "heartbeat", {
    name: "idle",
    requirement: "A session without data, whose client sends PINGs, stays open and is answered all the time.",
    why: "Shells that wait for a user are cut.",
    source: "client-go TestWebSocketClient_HeartbeatTimeout, _HeartbeatSucceeds",
    severity: "must",
    needs: ["cat"],
    isPassive: true,
    run: async (lab, transport) => {
      const session = await lab.command(transport, ["cat"], { stdin: true, times: HEARTBEAT });
      await survives(lab, session, lab.settings.heartbeatMs);
    },
  }),
];

const PINGED = {
  severity: "must",
  why: "Time-outs of hops that do not see PINGs as traffic cut shells, long commands and pooled connections.",
} as const;
const SILENT = {
  severity: "should",
  why: "Browsers cannot send PINGs: their terminals are cut. The server, or each hop, has to send them.",
} as const;

const silentCases: readonly ConformanceCase[] = IDLE_SECONDS.flatMap((seconds) => {
  const waits = { isPassive: true, timeoutMs: (seconds + 30) * 1_000 };
  const silenceMs = ({ settings }: CaseLab): number => seconds * 1_000 * settings.idleScale;
  return [
    ...onEach(TRANSPORTS, "idle", {
      ...{ ...PINGED, ...waits, name: `pinged-${seconds}s`, needs: ["cat"] },
      requirement: `A session without data for ${seconds} s, whose client sends PINGs as kubectl does, stays open.`,
      source: "kubernetes #66661, #94301, #75488; client-go (a PING every 5 s)",
      run: async (lab, transport) => {
        const times = { pingIntervalMs: CLIENT_PING_MS * lab.settings.idleScale, deadlineMs: NEVER };
        const session = await lab.command(transport, ["cat"], { stdin: true, times });
        await survives(lab, session, silenceMs(lab));
      },
    }),
    ...onEach(TRANSPORTS, "idle", {
      ...{ ...SILENT, ...waits, name: `silent-${seconds}s`, needs: ["cat"] },
      requirement: `A session without data for ${seconds} s, whose client sends no PINGs, stays open.`,
      source: "kubernetes #94301, kubernetes-client/javascript #478; headlamp #4815",
      run: async (lab, transport) => {
        const times = { pingIntervalMs: NEVER, deadlineMs: NEVER };
        const session = await lab.command(transport, ["cat"], { stdin: true, times });
        await survives(lab, session, silenceMs(lab));
      },
    }),
    ...onEach(FORWARD_TRANSPORTS, "idle", {
      ...{ ...PINGED, ...waits, name: `pinged-${seconds}s`, needs: [], needsEcho: true },
      requirement: `A forwarded connection without data for ${seconds} s, whose client sends PINGs as kubectl does, stays open.`,
      source: "kubernetes #94301, #97083; client-go (a PING every 10 s)",
      run: (lab, transport) =>
        forwardSurvives(lab, transport, silenceMs(lab), FORWARD_PING_MS * lab.settings.idleScale),
    }),
    ...onEach(FORWARD_TRANSPORTS, "idle", {
      ...{ ...SILENT, ...waits, name: `silent-${seconds}s`, needs: [], needsEcho: true },
      why: "Clients that send none, such as browsers' and kubectl's of old, lose their connections.",
      requirement: `A forwarded connection without data for ${seconds} s, whose client sends no PINGs, stays open.`,
      source: "kubernetes #97083 (before it kubectl sent none), kubernetes-client/javascript #478",
      run: (lab, transport) => forwardSurvives(lab, transport, silenceMs(lab), NEVER),
    }),
  ];
});

export const idleCases: readonly ConformanceCase[] = [...heartbeatCases, ...silentCases];
