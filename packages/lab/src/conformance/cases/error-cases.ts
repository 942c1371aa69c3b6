import { type HeaderLine, headerValues } from "@sluice/client/internal/http/header-list";
import { decodeStatus } from "@sluice/protocols/remotecommand";
import type { CaseLab, UpgradeAnswer } from "../case-lab.ts";
import { type ConformanceCase, onEach } from "../conformance-case.ts";
import type { CommandSessionRequest, EndpointProfile } from "../endpoint.ts";
import { COMMAND_TRANSPORTS } from "../endpoint.ts";
import { Violation } from "../judge.ts";

/** gorilla keeps at most this much of a refusal; kubectl shows a longer Status as raw text. */
const MAX_DECODED_BYTES = 1024;

const command = (streams: object, container?: string): CommandSessionRequest => ({
  kind: "exec",
  command: ["sh", "-c", "exit 0"],
  streams: { stdin: false, stdout: false, stderr: false, tty: false, ...streams },
  container,
});

/** A runtime's URL already stands for a container and its streams. */
const REQUESTING: readonly EndpointProfile[] = ["api-server", "kubelet"];

const WEB_SOCKET: readonly HeaderLine[] = [
  ["Connection", "Upgrade"],
  ["Upgrade", "websocket"],
  ["Sec-WebSocket-Version", "13"],
  ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="],
  ["Sec-WebSocket-Protocol", "v5.channel.k8s.io"],
];
const SPDY: readonly HeaderLine[] = [
  ["Connection", "Upgrade"],
  ["Upgrade", "SPDY/3.1"],
  ["X-Stream-Protocol-Version", "v4.channel.k8s.io"],
];

/** Expects a refusal whose body matches its announced length. */
function expectWholeRefusal({ status, headers, body, bodyProblem }: UpgradeAnswer): void {
  if (status < 400 || status > 599) throw new Violation(`answered ${status}, a refusal was expected`);
  if (bodyProblem !== undefined)
    throw new Violation(
      `the body of the ${status} is not whole (${bodyProblem}): ${body.toString().slice(0, 80)}`,
    );
  const lengths = headerValues(headers, "Content-Length");
  if (lengths.some((length) => Number(length) !== body.byteLength))
    throw new Violation(`the body has ${body.byteLength} bytes, Content-Length is ${lengths.join(", ")}`);
}

/** From an API server, also expects a Status that clients can decode. */
function expectRefusal(lab: CaseLab, answer: UpgradeAnswer, wanted: number): void {
  expectWholeRefusal(answer);
  if (lab.endpoint.profile !== "api-server") return;
  const { status, body } = answer;
  const decoded = decodeStatus(body);
  if (decoded?.status !== "Failure")
    throw new Violation(`the body of the ${status} is not a Status: ${body.toString().slice(0, 120)}`);
  if (body.byteLength > MAX_DECODED_BYTES)
    throw new Violation(`the Status has ${body.byteLength} bytes, clients decode ${MAX_DECODED_BYTES}`);
  if (status !== wanted)
    throw new Violation(`answered ${status}, ${wanted} was expected: ${decoded.message ?? ""}`);
}

export const errorCases: readonly ConformanceCase[] = [
  ...(["websocket", "spdy"] as const).map(
    (transport): ConformanceCase => ({
      id: `errors/unknown-container/${transport}`,
      group: "errors",
      requirement:
        "A session with a container that does not exist is refused before the 101, with a whole Status.",
      why: "Users see an empty or wrong error instead of the reason.",
      source: "Kubernetes API (Status); apimachinery TestProxyUpgradeErrorResponseTerminates",
      severity: "must",
      needs: [],
      profiles: REQUESTING,
      run: async (lab) => {
        const request = command({ stdout: true }, "sluice-conformance-none");
        const answer =
          transport === "spdy"
            ? await lab.answer(request, "POST", SPDY)
            : await lab.answer(request, "GET", WEB_SOCKET);
        expectRefusal(lab, answer, 400);
      },
    }),
  ),
  {
    id: "errors/no-upgrade",
    group: "errors",
    requirement: "A session without an upgrade is refused, with a whole Status.",
    why: "A hop that strips Upgrade is taken for a working one.",
    source: "apimachinery TestServeHTTP (Upgrade request required)",
    severity: "must",
    needs: [],
    run: async (lab) => expectRefusal(lab, await lab.answer(command({ stdout: true }), "GET", []), 400),
  },
  {
    id: "errors/no-streams",
    group: "errors",
    requirement: "A session that asks for no stream is refused, with a whole answer.",
    why: "Such a session would hang without ever saying anything.",
    source: "kubelet (you must specify at least 1 of stdin, stdout, stderr)",
    severity: "should",
    needs: [],
    profiles: REQUESTING,
    run: async (lab) => expectWholeRefusal(await lab.answer(command({}), "POST", SPDY)),
  },
  ...onEach(COMMAND_TRANSPORTS, "errors", {
    name: "missing-command",
    requirement: "A command that does not exist ends with a failure that has a text, never with success.",
    why: "Scripts go on as if the command had run.",
    source: "CRI (InternalError); client-go TestV4ErrorDecoder",
    severity: "must",
    needs: ["sh"],
    run: async (lab, transport) => {
      const session = await lab.command(transport, ["/sluice-conformance/none"]);
      const { outcome, error } = await lab.within("the end of the session", session.ended);
      if (outcome.type === "missing") throw new Violation(`no status arrived: ${error.message}`);
      if (outcome.type === "success") throw new Violation("success was reported");
      if (outcome.message === "") throw new Violation("the failure has no text");
    },
  }),
];
