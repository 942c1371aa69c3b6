import { setTimeout as delay } from "node:timers/promises";
import { LINE_BYTES, LineSequence } from "../../load/seeded-stream.ts";
import type { CaseLab } from "../case-lab.ts";
import { type ConformanceCase, onEach } from "../conformance-case.ts";
import {
  COMMAND_TRANSPORTS,
  type CommandTransport,
  FORWARD_TRANSPORTS,
  type ForwardTransport,
  LEGACY_TRANSPORTS,
} from "../endpoint.ts";
import { expectBytes, expectExit, expectStatus, expectText } from "../judge.ts";
import { echo } from "./port-forward-cases.ts";

/**
 * Clients send PINGs. If the server has closed its socket, its kernel answers them with a reset,
 * which discards unread bytes.
 */
const PING_INTERVAL_MS = 500;
const MARGIN_MS = 30_000;
const HALF_CLOSING: readonly CommandTransport[] = ["websocket-v5", "spdy"];

function outputBytes({ settings }: CaseLab): number {
  return Math.ceil(settings.slowBytes / LINE_BYTES) * LINE_BYTES;
}

/**
 * A busy machine writes more slowly than the client reads, so a longer case timeout also allows
 * more time for its output.
 */
function outputTimeMs({ settings: { slowBytes, slowRate, caseTimeoutMs } }: CaseLab): number {
  return Math.max((slowBytes / slowRate) * 2_000 + MARGIN_MS, caseTimeoutMs - MARGIN_MS);
}

const STEADY = {
  name: "steady",
  requirement:
    "A client that reads more slowly than the command writes gets everything, and then the status.",
  why: "Downloads over slow lines are cut at the end, often with exit code 0.",
  source: "kubernetes #142376, TestServeExecSlowClientReceivesAllOutput",
} as const;
const STALLED = {
  name: "stalled",
  requirement:
    "A client that does not read for a while, until after the command has written, gets everything afterwards.",
  why: "A pager or a suspended terminal loses output.",
  source: "kubernetes #142376; client-go (the deadline of 61 s is renewed by PONGs)",
} as const;

async function runSteady(lab: CaseLab, transport: CommandTransport): Promise<void> {
  const byteLength = outputBytes(lab);
  const session = await lab.command(transport, LineSequence.command(byteLength), {
    check: new LineSequence(),
    readRate: lab.settings.slowRate,
    times: { pingIntervalMs: PING_INTERVAL_MS },
  });
  const result = await lab.within("the end of the output", session.ended, outputTimeMs(lab));
  expectBytes("the output", session.stdout, byteLength, result);
  expectExit(result, 0);
}

async function runStalled(lab: CaseLab, transport: CommandTransport): Promise<void> {
  const byteLength = outputBytes(lab);
  const session = await lab.command(transport, LineSequence.command(byteLength), {
    check: new LineSequence(),
    times: { pingIntervalMs: PING_INTERVAL_MS },
  });
  session.pause();
  await delay(lab.settings.stallMs);
  session.resume();
  const result = await lab.within("the end of the output", session.ended, outputTimeMs(lab));
  expectBytes("the output", session.stdout, byteLength, result);
  expectExit(result, 0);
}

/** The pod's echo server sends as fast as the client reads. */
async function runForward(
  lab: CaseLab,
  transport: ForwardTransport,
  options: { readonly readRate?: number; readonly stallMs?: number },
): Promise<void> {
  const connection = await lab.forward(transport, { forwardPingIntervalMs: PING_INTERVAL_MS });
  const timeoutMs = outputTimeMs(lab);
  await echo(lab, connection, 0, outputBytes(lab), { ...options, timeoutMs, endsLast: true });
}

const readingCases: readonly ConformanceCase[] = [
  ...[STEADY, STALLED].flatMap((what) => {
    const run = what === STEADY ? runSteady : runStalled;
    return [
      ...onEach(COMMAND_TRANSPORTS, "slow-reader", { ...what, severity: "must", needs: ["seq"], run }),
      ...onEach(LEGACY_TRANSPORTS, "slow-reader", { ...what, severity: "should", needs: ["seq"], run }),
    ];
  }),
  ...onEach(FORWARD_TRANSPORTS, "slow-reader", {
    ...STEADY,
    requirement:
      "A client that reads more slowly than the pod's server sends gets everything, and then its end.",
    severity: "must",
    needs: [],
    needsEcho: true,
    run: (lab, transport) => runForward(lab, transport, { readRate: lab.settings.slowRate }),
  }),
  ...onEach(FORWARD_TRANSPORTS, "slow-reader", {
    ...STALLED,
    requirement:
      "A client that does not read for a while gets everything that the pod's server sent afterwards.",
    severity: "must",
    needs: [],
    needsEcho: true,
    run: (lab, transport) => runForward(lab, transport, { stallMs: lab.settings.stallMs }),
  }),
];

const backpressureCases: readonly ConformanceCase[] = [
  ...onEach(HALF_CLOSING, "backpressure", {
    name: "late-reader",
    requirement: "A command that does not read its input at once gets all of it.",
    why: "Uploads to slow programs are cut or break the session.",
    source: "kubernetes #112834; client-go (write deadline of 60 s)",
    severity: "must",
    needs: ["sh", "sleep", "wc"],
    run: async (lab, transport) => {
      const byteLength = lab.settings.slowBytes;
      const seconds = Math.ceil(lab.settings.stallMs / 1_000);
      const session = await lab.shell(transport, `sleep ${seconds}; wc -c`, { stdin: true });
      await session.write(Buffer.alloc(byteLength, "0123456789"));
      session.endInput();
      const result = await lab.within("the end of the session", session.ended, MARGIN_MS);
      expectText("the bytes that the command counted", session.stdout.text.trim(), String(byteLength));
      expectStatus(result, 0);
    },
  }),
  ...onEach(COMMAND_TRANSPORTS, "backpressure", {
    name: "stalled-neighbour",
    requirement: "A session whose client does not read holds up no other session.",
    why: "One stalled terminal freezes all users of the hop.",
    source: "kubernetes #120889, #50428; envoy #17281",
    severity: "must",
    needs: ["seq", "sh"],
    run: async (lab, transport) => {
      const stalled = await lab.command(transport, LineSequence.command(4 * outputBytes(lab)));
      stalled.pause();
      await delay(lab.settings.stallMs);
      const other = await lab.within("a second session", lab.shell(transport, "echo other"));
      expectStatus(await lab.within("the end of the second session", other.ended), 0);
      expectText("stdout", other.stdout.text, "other\n");
    },
  }),
];

export const slowReaderCases: readonly ConformanceCase[] = [...readingCases, ...backpressureCases];
