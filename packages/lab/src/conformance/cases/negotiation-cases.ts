import { ConnectError } from "@sluice/client";
import { headerValues } from "@sluice/client/internal/http/header-list";
import type { CaseLab } from "../case-lab.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import type { EndpointProfile, SessionRequest } from "../endpoint.ts";
import { OFFERS, type Transport } from "../endpoint.ts";
import { SkippedCase, Violation } from "../judge.ts";

const EXEC: SessionRequest = {
  kind: "exec",
  command: ["sh", "-c", "exit 0"],
  streams: { stdin: false, stdout: true, stderr: false, tty: false },
};
const FORWARD: SessionRequest = { kind: "port-forward" };

interface NegotiationRow {
  readonly transport: Transport;
  readonly requirement: string;
  readonly why: string;
  readonly source: string;
  readonly severity: "must" | "should";
  /** Servers with these profiles must accept it; others may refuse with an HTTP answer. */
  readonly expectedOf: readonly EndpointProfile[];
}

const rows: readonly NegotiationRow[] = [
  {
    transport: "websocket-v5",
    requirement: "exec is accepted over a WebSocket with exactly v5.channel.k8s.io, and without extensions.",
    why: "kubectl from 1.30 on falls back to SPDY, which many networks refuse.",
    source: "KEP-4006; client-go TestWebSocketClient_BadHandshake; RFC 6455 section 4.2.2",
    severity: "must",
    expectedOf: ["api-server"],
  },
  {
    transport: "websocket-v4",
    requirement: "exec is accepted over a WebSocket with v4.channel.k8s.io.",
    why: "The clients for Java (fabric8), JavaScript and browsers' consoles speak it.",
    source: "k8s.io/streaming TestVersionedConn",
    severity: "should",
    expectedOf: ["api-server", "kubelet", "runtime"],
  },
  {
    transport: "spdy",
    requirement: "exec is accepted over SPDY/3.1, with one of v4, v3 and v2 named in the answer.",
    why: "kubectl up to 1.29 has nothing else; newer ones fall back to it.",
    source: "k8s.io/streaming TestHandshake, TestUpgradeResponse",
    severity: "must",
    expectedOf: ["api-server", "kubelet", "runtime"],
  },
  {
    transport: "tunnel",
    requirement: "port-forward is accepted over a WebSocket with SPDY/3.1+portforward.k8s.io.",
    why: "kubectl from 1.31 on falls back to SPDY, which many networks refuse.",
    source: "KEP-4006; apiserver TestTunnelingHandler_UpgradeStreamingAndTunneling",
    severity: "must",
    expectedOf: ["api-server"],
  },
  {
    transport: "spdy-forward",
    requirement: "port-forward is accepted over SPDY/3.1, with portforward.k8s.io named in the answer.",
    why: "kubectl up to 1.30 has nothing else; newer ones fall back to it.",
    source: "client-go portforward TestFallbackDialer; k8s.io/streaming TestHandshake",
    severity: "must",
    expectedOf: ["api-server", "kubelet", "runtime"],
  },
];

const SPDY_LINES = ["v5", "v4", "v3", "v2"].map((version) => `${version}.channel.k8s.io`);
const SPDY_UPGRADE = [
  ["Connection", "Upgrade"],
  ["Upgrade", "SPDY/3.1"],
] as const;

async function negotiate(lab: CaseLab, { transport, expectedOf }: NegotiationRow): Promise<void> {
  const offer = OFFERS[transport];
  const request = transport === "tunnel" || transport === "spdy-forward" ? FORWARD : EXEC;
  try {
    const { protocol, socket } = await lab.dial(request, offer);
    socket.destroy();
    if (!offer.protocols.includes(protocol))
      throw new Violation(
        `offered ${offer.protocols.join(", ")}, the answer names ${JSON.stringify(protocol)}`,
      );
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    const isRefusal = error.leg === "http" && (error.httpStatus ?? 0) >= 400;
    if (isRefusal && !expectedOf.includes(lab.endpoint.profile))
      throw new SkippedCase(`refused, as this kind of server may: ${error.message}`);
    throw error;
  }
}

/** The version that the server chooses from client-go's SPDY offer. */
async function chosenOf(lab: CaseLab, lines: readonly string[]): Promise<string> {
  const offers = lines.map((line) => ["X-Stream-Protocol-Version", line] as const);
  const { status, headers, body } = await lab.answer(EXEC, "POST", [...SPDY_UPGRADE, ...offers]);
  if (status !== 101) throw new Violation(`answered ${status}: ${body.toString().slice(0, 200)}`);
  return headerValues(headers, "X-Stream-Protocol-Version").join(", ");
}

export const negotiationCases: readonly ConformanceCase[] = [
  ...rows.map(
    (row): ConformanceCase => ({
      ...row,
      id: `negotiation/${row.transport}`,
      group: "negotiation",
      transport: undefined,
      needs: [],
      run: (lab) => negotiate(lab, row),
    }),
  ),
  {
    id: "negotiation/spdy-best-version",
    group: "negotiation",
    requirement: "Of five SPDY versions in as many header lines the best one is chosen.",
    why: "With an older one exit codes are text, or lost.",
    source: "client-go remotecommand; k8s.io/streaming TestHandshake (first client preference wins)",
    severity: "must",
    needs: [],
    transport: "spdy",
    run: async (lab) => {
      const chosen = await chosenOf(lab, [...SPDY_LINES, "channel.k8s.io"]);
      if (chosen !== "v4.channel.k8s.io" && chosen !== "v5.channel.k8s.io")
        throw new Violation(`chose ${JSON.stringify(chosen)}, not v4.channel.k8s.io`);
    },
  },
  {
    id: "negotiation/spdy-folded-versions",
    group: "negotiation",
    requirement: "SPDY versions in one header line, separated by commas, are read as well.",
    why: "Hops that join repeated header lines break SPDY.",
    source: "kubernetes #95733; RFC 9110 section 5.3",
    severity: "should",
    needs: [],
    transport: "spdy",
    run: async (lab) => {
      const chosen = await chosenOf(lab, [SPDY_LINES.join(", ")]);
      if (chosen !== "v4.channel.k8s.io" && chosen !== "v5.channel.k8s.io")
        throw new Violation(`chose ${JSON.stringify(chosen)}, not v4.channel.k8s.io`);
    },
  },
  {
    id: "negotiation/unknown-subprotocol",
    group: "negotiation",
    requirement:
      "A WebSocket with only an unknown subprotocol is refused by an HTTP answer, so that clients fall back.",
    why: "Clients do not fall back after a 101 to what they did not ask for, nor after a closed connection.",
    source: "client-go TestFallbackClient_SPDYSecondarySucceeds, IsUpgradeFailure",
    severity: "must",
    needs: [],
    run: async (lab) => {
      try {
        const { socket } = await lab.dial(EXEC, { transport: "websocket", protocols: ["v9.channel.k8s.io"] });
        socket.destroy();
        throw new Violation("it was accepted");
      } catch (error) {
        // A 101 without the subprotocol is an upgrade failure as well: client-go falls back.
        if (!(error instanceof ConnectError) || !error.isUpgradeFailure) throw error;
      }
    },
  },
];
