import { randomBytes } from "node:crypto";
import { type HeaderLine, headerTokens, headerValues } from "@sluice/client/internal/http/header-list";
import type { CaseLab, UpgradeAnswer } from "../case-lab.ts";
import { type ConformanceCase, onEach } from "../conformance-case.ts";
import type { CommandSessionRequest } from "../endpoint.ts";
import { COMMAND_TRANSPORTS } from "../endpoint.ts";
import { expectStatus, expectText, Violation } from "../judge.ts";

const LONG_ARGUMENT_BYTES = 12 * 1024;
const FORWARDED: readonly HeaderLine[] = [
  ["X-Forwarded-For", "192.0.2.1, 198.51.100.7"],
  ["X-Forwarded-Proto", "https"],
  ["X-Forwarded-Host", "example.com"],
  ["Via", "1.1 hop"],
  ["Forwarded", "for=192.0.2.1;proto=https"],
];

const EXIT_0: CommandSessionRequest = {
  kind: "exec",
  command: ["sh", "-c", "exit 0"],
  streams: { stdin: false, stdout: true, stderr: false, tty: false },
};

function webSocketAnswer(lab: CaseLab, upgrade: readonly HeaderLine[]): Promise<UpgradeAnswer> {
  return lab.answer(EXIT_0, "GET", [
    ...upgrade,
    ["Sec-WebSocket-Version", "13"],
    ["Sec-WebSocket-Key", randomBytes(16).toString("base64")],
    ["Sec-WebSocket-Protocol", "v5.channel.k8s.io"],
  ]);
}

function expect101({ status, body }: UpgradeAnswer): void {
  if (status !== 101) throw new Violation(`answered ${status}: ${body.toString().slice(0, 200)}`);
}

function expectOne(headers: UpgradeAnswer["headers"], name: string, value: string): void {
  const values = headerValues(headers, name);
  if (values.length !== 1 || values[0]?.toLowerCase() !== value.toLowerCase())
    throw new Violation(
      `the 101 has ${values.length} lines ${name} (${values.join("; ")}), not one with ${value}`,
    );
}

export const headerCases: readonly ConformanceCase[] = [
  {
    id: "headers/websocket-101",
    group: "headers",
    requirement:
      "The 101 of a WebSocket has one line each of Upgrade, Connection, Sec-WebSocket-Accept and Sec-WebSocket-Protocol, and no body.",
    why: "Strict clients refuse doubled or missing lines; a length makes hops wait for a body.",
    source: "RFC 6455 section 4.2.2; RFC 9110 section 15.2.2; RFC 9112 section 6.3",
    severity: "must",
    needs: [],
    transport: "websocket-v5",
    run: async (lab) => {
      const answer = await webSocketAnswer(lab, [
        ["Connection", "Upgrade"],
        ["Upgrade", "websocket"],
      ]);
      expect101(answer);
      const { headers } = answer;
      expectOne(headers, "Upgrade", "websocket");
      expectOne(headers, "Sec-WebSocket-Protocol", "v5.channel.k8s.io");
      if (!headerTokens(headers, "Connection").includes("upgrade"))
        throw new Violation("Connection does not name upgrade");
      for (const name of ["Content-Length", "Transfer-Encoding", "Sec-WebSocket-Extensions"]) {
        if (headerValues(headers, name).length > 0) throw new Violation(`the 101 has a line ${name}`);
      }
    },
  },
  {
    id: "headers/extension-not-taken",
    group: "headers",
    requirement: "An offered permessage-deflate is not taken.",
    why: "Kubernetes' servers and clients do not compress; a hop that takes the offer for them breaks frames.",
    source: "golang.org/x/net/websocket (no extensions); RFC 7692",
    severity: "should",
    needs: [],
    transport: "websocket-v5",
    run: async (lab) => {
      const answer = await webSocketAnswer(lab, [
        ["Connection", "Upgrade"],
        ["Upgrade", "websocket"],
        ["Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits"],
      ]);
      expect101(answer);
      const taken = headerValues(answer.headers, "Sec-WebSocket-Extensions").join(", ");
      if (taken !== "") throw new Violation(`took ${taken}`);
    },
  },
  ...onEach(COMMAND_TRANSPORTS, "headers", {
    name: "long-command",
    requirement: "A command of 12 KiB fits in the request.",
    why: "Scripts given to kubectl exec are refused with 414, 431 or 400.",
    source: "nginx large_client_header_buffers; HAProxy tune.bufsize; Go's limit is 1 MiB",
    severity: "should",
    needs: ["sh"],
    run: async (lab, transport) => {
      const long = "x".repeat(LONG_ARGUMENT_BYTES);
      const session = await lab.command(transport, ["sh", "-c", `echo "\${#1}"`, "sh", long]);
      expectStatus(await lab.within("the end of the session", session.ended), 0);
      expectText("the length of the argument", session.stdout.text, `${LONG_ARGUMENT_BYTES}\n`);
    },
  }),
  {
    id: "proxies/forwarding-headers",
    group: "proxies",
    requirement: "Requests that name earlier hops (X-Forwarded-For, Forwarded, Via) are accepted.",
    why: "The endpoint does not work behind another load balancer.",
    source: "RFC 7239; RFC 9110 section 7.6.3",
    severity: "must",
    needs: [],
    transport: "websocket-v5",
    run: async (lab) =>
      expect101(
        await webSocketAnswer(lab, [["Connection", "Upgrade"], ["Upgrade", "websocket"], ...FORWARDED]),
      ),
  },
  {
    id: "proxies/connection-list",
    group: "proxies",
    requirement: '"Connection: keep-alive, Upgrade" is read as a list.',
    why: "Firefox and some hops send it so.",
    source: "RFC 9110 section 7.6.1; k8s.io/streaming TestUpgradeResponse",
    severity: "must",
    needs: [],
    transport: "websocket-v5",
    run: async (lab) =>
      expect101(
        await webSocketAnswer(lab, [
          ["Connection", "keep-alive, Upgrade"],
          ["Upgrade", "websocket"],
        ]),
      ),
  },
  {
    id: "proxies/letter-case",
    group: "proxies",
    requirement: "The case of letters in header names, and in Connection and Upgrade, does not matter.",
    why: "Hops write headers in lower case, as HTTP/2 does.",
    source: "RFC 6455 section 4.2.1; RFC 9110 section 5.1",
    severity: "must",
    needs: [],
    transport: "websocket-v5",
    run: async (lab) =>
      expect101(
        await webSocketAnswer(lab, [
          ["connection", "upgrade"],
          ["upgrade", "WebSocket"],
        ]),
      ),
  },
];
