import { ConnectError } from "@sluice/client";
import { dataChannelOf, PORT_PREFIX_BYTES } from "@sluice/protocols/portforward";
import { CHANNEL, type RemoteCommandVersion } from "@sluice/protocols/remotecommand";
import type { CaseLab } from "../case-lab.ts";
import type { ConformanceCase } from "../conformance-case.ts";
import { expectText, SkippedCase, Violation } from "../judge.ts";
import { RawWebSocket } from "../raw-websocket.ts";

const STREAMS = { stdin: false, stdout: true, stderr: true, tty: false };
const WORD = "over the old protocol";

/** Servers may refuse old protocols; what they accept must work. */
async function unlessRefused<T>(session: Promise<T>): Promise<T> {
  try {
    return await session;
  } catch (error) {
    if (error instanceof ConnectError && error.isUpgradeFailure)
      throw new SkippedCase(`it is refused: ${error.message}`);
    throw error;
  }
}

async function viaSpdy(lab: CaseLab, version: RemoteCommandVersion): Promise<void> {
  const offer = { transport: "spdy", protocols: [version] } as const;
  const script = "echo out; echo err >&2; exit 7";
  const session = await unlessRefused(lab.shell("spdy", script, { stderr: true, offer }));
  const result = await lab.within("the end of the session", session.ended);
  expectText("stdout", session.stdout.text, "out\n");
  expectText("stderr", session.stderr.text, "err\n");
  if (result.outcome.type === "success")
    throw new Violation("a command that failed was reported as a success");
}

async function viaWebSocket(lab: CaseLab, protocol: RemoteCommandVersion): Promise<void> {
  const isBase64 = protocol.includes("base64");
  const command = ["sh", "-c", `echo "${WORD}"`];
  const offer = { transport: "websocket", protocols: [protocol] } as const;
  const { socket, head } = await unlessRefused(lab.dial({ kind: "exec", command, streams: STREAMS }, offer));
  const webSocket = new RawWebSocket(socket, head);
  const { code, problem } = await lab.within("the end of the session", webSocket.ended);
  if (problem !== undefined) throw new Violation(problem);
  if (code !== 1000)
    throw new Violation(`ended with ${code === undefined ? "no Close frame" : `Close ${code}`}`);
  const textOf = (channel: number): string =>
    webSocket.messages
      .filter(({ bytes }) => bytes[0] === (isBase64 ? 0x30 + channel : channel))
      .map(({ bytes }) =>
        isBase64 ? Buffer.from(bytes.subarray(1).toString(), "base64") : bytes.subarray(1),
      )
      .join("");
  expectText("stdout", textOf(CHANNEL.STDOUT), `${WORD}\n`);
}

export const legacyCases: readonly ConformanceCase[] = [
  ...(["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io"] as const).map(
    (version): ConformanceCase => ({
      id: `legacy/spdy-${version.slice(0, 2)}`,
      group: "legacy",
      requirement: `Over SPDY, ${version} carries both outputs, and the failure of a command.`,
      why: "Clients of old releases get wrong results.",
      source: "client-go TestV2ErrorStreamReading, TestV4ErrorDecoder",
      severity: "should",
      needs: ["sh"],
      transport: "spdy",
      run: (lab) => viaSpdy(lab, version),
    }),
  ),
  ...(["v4.base64.channel.k8s.io", "base64.channel.k8s.io", "channel.k8s.io"] as const).map(
    (version): ConformanceCase => ({
      id: `legacy/websocket-${version.replace(".channel.k8s.io", "").replace("channel.k8s.io", "v1")}`,
      group: "legacy",
      requirement: `Over a WebSocket, ${version} carries the output and ends with Close 1000.`,
      why: "Browsers' consoles that read text messages break.",
      source: "k8s.io/streaming TestBase64Conn, TestRawConn",
      severity: "should",
      needs: ["sh"],
      run: (lab) => viaWebSocket(lab, version),
    }),
  ),
  {
    id: "legacy/websocket-port-forward",
    group: "legacy",
    requirement: "Port-forward over v4.channel.k8s.io names its port first, and repeats what is sent.",
    why: "The clients for Java, JavaScript and Python have no other.",
    source: "cri-streaming TestServePortForward (the port, little endian, on channels 0 and 1)",
    severity: "should",
    needs: [],
    needsEcho: true,
    run: async (lab) => {
      const port = lab.settings.echoPort ?? 0;
      const offer = { transport: "websocket", protocols: ["v4.channel.k8s.io"] } as const;
      const { socket, head } = await unlessRefused(
        lab.dial({ kind: "port-forward", legacyPort: port }, offer),
      );
      const webSocket = new RawWebSocket(socket, head);
      webSocket.send(Buffer.concat([Buffer.of(dataChannelOf(0)), Buffer.from(WORD)]));
      const data = (): Buffer =>
        Buffer.concat(
          webSocket.messages
            .filter(({ bytes }) => bytes[0] === dataChannelOf(0))
            .map(({ bytes }) => bytes.subarray(1)),
        );
      const whole = PORT_PREFIX_BYTES + WORD.length;
      await lab.within(
        "the echo",
        webSocket.until(() => data().byteLength >= whole),
      );
      const named = data().readUInt16LE(0);
      if (named !== port) throw new Violation(`the first message names port ${named}, not ${port}`);
      expectText("what came back", data().subarray(PORT_PREFIX_BYTES).toString(), WORD);
    },
  },
];
