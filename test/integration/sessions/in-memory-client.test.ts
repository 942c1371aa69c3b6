import { randomBytes } from "node:crypto";
import { type Duplex, duplexPair } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import type { RefusedUpgrade } from "../../../packages/client/src/http/upgrade/upgrade-request.ts";
import { apiServerLeg } from "../../../src/legs/api-server/api-server-leg.ts";
import type { Downstream } from "../../../src/sessions/incoming-request.ts";
import { runSession } from "../../../src/sessions/run-session.ts";
import { type GatewayHarness, startGatewayHarness } from "../../support/gateway-harness.ts";
import { endExec, type KubeletScript, ScriptedKubelet, SUCCESS } from "../../support/scripted-kubelet.ts";
import { clientSocketOver } from "../../support/tunnel-client.ts";
import { V5Client } from "../../support/v5-client.ts";

let harness: GatewayHarness | undefined;
let kubelet: ScriptedKubelet | undefined;

afterEach(async () => {
  await harness?.close();
  await kubelet?.close();
  harness = kubelet = undefined;
});

/** A client in this process: no socket, no 101, a pair of streams. */
class MemoryClient implements Downstream {
  readonly #abort = new AbortController();
  readonly signal = this.#abort.signal;
  readonly near: Duplex;
  readonly #far: Duplex;
  accepted: string | undefined;
  refused: number | undefined;

  constructor() {
    [this.near, this.#far] = duplexPair();
    for (const end of [this.near, this.#far]) end.on("error", () => {});
  }

  accept({ headers }: Parameters<Downstream["accept"]>[0], begin: Parameters<Downstream["accept"]>[1]): void {
    this.accepted = headers.find(([name]) => name === "Sec-WebSocket-Protocol")?.[1];
    begin({ socket: this.#far, head: new Uint8Array(0) }, 101);
  }

  async refuse({ status, body }: RefusedUpgrade): Promise<void> {
    this.refused = status;
    body.resume();
  }
}

async function run(script: KubeletScript, client: MemoryClient, query: string): Promise<void> {
  kubelet = new ScriptedKubelet(script);
  harness = await startGatewayHarness({ kubeletPort: await kubelet.listen() });
  const target = `/api/v1/namespaces/default/pods/web/exec?${query}`;
  const incoming = {
    method: "GET",
    url: new URL(target, "http://memory"),
    target,
    headers: [
      ["Connection", "Upgrade"],
      ["Upgrade", "websocket"],
      ["Sec-WebSocket-Version", "13"],
      ["Sec-WebSocket-Key", randomBytes(16).toString("base64")],
      ["Sec-WebSocket-Protocol", "v5.channel.k8s.io"],
    ] as const,
    remoteAddress: "memory",
  };
  const path = { namespace: "default", pod: "web", subresource: "exec" } as const;
  await runSession(apiServerLeg(path, harness.context, undefined), incoming, client, harness.context);
}

describe("a client in memory", () => {
  it("has its session as a socket has it: input, output, status", async () => {
    const client = new MemoryClient();
    const script: KubeletScript = {
      onData: (name, part, fin, session) => {
        if (name !== "stdin") return;
        if (part.byteLength > 0) session.streams.get("stdout")?.write(Buffer.from(part));
        if (fin) endExec(session, SUCCESS);
      },
    };
    const v5 = new V5Client(clientSocketOver(client.near, Buffer.alloc(0)));
    await run(script, client, "stdin=true&stdout=true&command=cat");
    expect(client.accepted).toBe("v5.channel.k8s.io");
    const sent = randomBytes(100_000);
    for (let at = 0; at < sent.length; at += 10_000) v5.send(0, sent.subarray(at, at + 10_000));
    v5.closeStdin();
    const { stdout, status, closeCode } = await v5.done;
    expect([stdout.equals(sent), status, closeCode]).toEqual([true, SUCCESS, 1000]);
    await expect
      .poll(() => harness?.logLines.some((line) => line.includes('"cause":"completed"')))
      .toBe(true);
  });

  it("is told of a refusal by its caller, and was not accepted", async () => {
    const client = new MemoryClient();
    const refusing: KubeletScript = { refuse: () => "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n" };
    await expect(run(refusing, client, "stdout=true&command=x")).rejects.toThrow(/403/);
    expect([client.accepted, harness?.context.sessions.size]).toEqual([undefined, 0]);
  });
});
