import { type IncomingMessage, request } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import {
  type GatewayHarness,
  type HarnessOptions,
  startGatewayHarness,
} from "../../../../support/gateway-harness.ts";
import { ManualClock } from "../../../../support/manual-clock.ts";
import { type KubeletScript, ScriptedKubelet } from "../../../../support/scripted-kubelet.ts";
import { V5Client } from "../../../../support/v5-client.ts";

let harness: GatewayHarness | undefined;
let kubelet: ScriptedKubelet | undefined;
const clock = new ManualClock();

afterEach(async () => {
  await harness?.close();
  await kubelet?.close();
  harness = kubelet = undefined;
});

async function start(policy: object, options: Partial<HarnessOptions> = {}, script: KubeletScript = {}) {
  kubelet = new ScriptedKubelet(script);
  harness = await startGatewayHarness({ kubeletPort: await kubelet.listen(), policy, ...options });
  return harness.authority;
}

/** The refusal of an upgrade: code, headers, message. */
function refusalOf(
  authority: string,
  query: string,
  { path = "exec", protocol = "v5.channel.k8s.io" as string | string[], headers = {} } = {},
): Promise<{ code: number; message: string; retryAfter: string | undefined; bytes: number }> {
  const url = `ws://${authority}/api/v1/namespaces/default/pods/web/${path}?${query}`;
  const socket = new WebSocket(url, protocol, { headers });
  return new Promise((resolve, reject) => {
    socket.on("open", () => reject(new Error("the session was let in")));
    socket.on("error", reject);
    socket.on("unexpected-response", async (_, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      resolve({
        code: response.statusCode ?? 0,
        message: JSON.parse(body.toString()).message,
        retryAfter: response.headers["retry-after"],
        bytes: body.byteLength,
      });
    });
  });
}

const denyShells = {
  rules: [
    { name: "no-shell", match: { command: [{ prefix: ["sh"] }] }, action: "deny", message: "ask on-call" },
  ],
};

describe("policy decides before a node is dialled", () => {
  it("a denied command: 403 that names the rule, kubectl can decode it, the node hears nothing", async () => {
    const refusal = await refusalOf(await start(denyShells), "command=sh&stdout=true");
    expect(refusal).toMatchObject({
      code: 403,
      message: 'pods "web" is forbidden: policy rule "no-shell" denies it: ask on-call',
    });
    expect(refusal.bytes).toBeLessThan(1_024);
    expect(kubelet?.requests).toEqual([]);
    expect(harness?.context.sessions.size).toBe(0);
  });

  it("a SPDY client is refused alike", async () => {
    const [host, port] = (await start(denyShells)).split(":");
    const path = "/api/v1/namespaces/default/pods/web/exec?command=sh&stdout=true";
    const headers = { Connection: "Upgrade", Upgrade: "SPDY/3.1" };
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request({ host, port, path, method: "POST", headers }, resolve).on("error", reject).end();
    });
    response.resume();
    expect(response.statusCode).toBe(403);
    expect(kubelet?.requests).toEqual([]);
  });

  it("another command goes through, and the log names the rule that let it in", async () => {
    const policy = { rules: [...denyShells.rules, { name: "rest", action: "allow" }] };
    const client = new V5Client(await start(policy), "command=ls&stdout=true");
    await client.opened;
    client.socket.terminate();
    await client.done;
    await expect.poll(() => harness?.logLines.join("")).toContain('"policyRule":"rest"');
  });

  it("a required reason: without it 403, by header or query it goes on, into the log and to no node", async () => {
    const policy = { rules: [{ name: "why", action: "requireReason" }] };
    const authority = await start(policy);
    expect((await refusalOf(authority, "command=ls&stdout=true")).message).toContain(
      'policy rule "why" requires a reason, in the header Sluice-Reason or the query parameter sluiceReason',
    );
    expect(
      await refusalOf(authority, `command=ls&stdout=true&sluiceReason=${"x".repeat(501)}`),
    ).toMatchObject({
      code: 400,
    });
    const client = new V5Client(authority, "command=ls&stdout=true&sluiceReason=incident%207");
    await client.opened;
    const url = `ws://${authority}/api/v1/namespaces/default/pods/web/exec?command=ls&stdout=true`;
    const other = new WebSocket(url, "v5.channel.k8s.io", { headers: { "Sluice-Reason": "incident 8" } });
    await new Promise((resolve) => other.once("open", resolve));
    for (const request of kubelet?.requests ?? []) {
      expect(`${request.url}${JSON.stringify(request.headers)}`).not.toMatch(/incident|reason/i);
    }
    client.socket.terminate();
    other.terminate();
    await expect.poll(() => harness?.logLines.join("")).toContain('"givenReason":"incident 8"');
  });

  it("a rule by port judges the legacy port-forward by its URL, and refuses a tunnel that it cannot see into", async () => {
    const policy = { rules: [{ name: "no-ssh", match: { ports: [22] }, action: "deny" }] };
    const authority = await start(policy, { declaredFeatures: ["ExtendWebSocketsToKubelet"] });
    const legacy = { path: "portforward", protocol: "v4.channel.k8s.io" };
    expect((await refusalOf(authority, "ports=80&ports=22", legacy)).message).toContain(
      'policy rule "no-ssh" denies it',
    );
    // kubectl takes the 403 for a reason to come again by SPDY, which is looked into.
    const tunnel = {
      path: "portforward",
      protocol: [],
      // ws takes a slash for a mistake.
      headers: { "Sec-WebSocket-Protocol": "SPDY/3.1+portforward.k8s.io" },
    };
    expect((await refusalOf(authority, "", tunnel)).message).toContain(
      'policy rule "no-ssh" decides by port, which cannot be seen in a WebSocket that passes through to the node',
    );
    expect(kubelet?.requests).toEqual([]);
  });
});

describe("sessions at once", () => {
  it.each([
    ["maxSessionsPerUser", 'user "tester" has 1 streaming sessions already, which is the limit'],
    ["maxSessionsPerNamespace", 'namespace "default" has 1 streaming sessions already, which is the limit'],
  ])("%s: 429 with Retry-After, and a place again when one ends", async (limit, message) => {
    const authority = await start({ limits: { [limit]: 1 } });
    const first = new V5Client(authority, "command=ls&stdout=true");
    await first.opened;
    expect(await refusalOf(authority, "command=ls&stdout=true")).toMatchObject({
      code: 429,
      retryAfter: "10",
      message,
    });
    // The refused one has given its place among all back.
    expect(harness?.context.sessions.size).toBe(1);
    first.socket.terminate();
    await first.done;
    await expect.poll(() => harness?.context.sessions.size).toBe(0);
    const second = new V5Client(authority, "command=ls&stdout=true");
    await second.opened;
    second.socket.terminate();
    await second.done;
  });
});

describe("time limits of a rule", () => {
  const MINUTE = 60_000;
  const timed = { rules: [{ name: "r", action: "allow", maxDuration: "1h", idleTimeout: "10m" }] };
  // Pings of clock jumps are never answered by this kubelet; nothing here depends on them.
  const words = (client: V5Client) =>
    client.messages.flatMap((message) => (message[0] === 1 ? [message.subarray(1).toString()] : []));

  async function open(query: string): Promise<V5Client> {
    const authority = await start(
      timed,
      { clock },
      {
        onData: (name, part, _fin, session) => {
          if (name === "stdin" && part.byteLength > 0)
            session.streams.get("stdout")?.write(Uint8Array.from(part));
        },
      },
    );
    const client = new V5Client(authority, `command=sh&stdout=true&stdin=true&${query}`);
    await client.opened;
    // The echo comes after the node's answers to all streams: before them, time would run out for these.
    await type(client, "ready");
    clock.advance(0);
    return client;
  }

  async function type(client: V5Client, text: string): Promise<void> {
    client.send(0, text);
    await expect.poll(() => words(client)).toContain(text);
  }

  it("idle: a terminal is warned a minute before, again after it moved, and then cut with a Status", async () => {
    const client = await open("tty=true");
    clock.advance(9 * MINUTE);
    const warning = "\r\nsluice: this session is idle and will be ended in 60 s\r\n";
    await expect.poll(() => words(client)).toContain(warning);
    await type(client, "still here");
    clock.advance(1_000);
    clock.advance(9 * MINUTE);
    await expect.poll(() => words(client).filter((text) => text === warning)).toHaveLength(2);
    clock.advance(MINUTE);
    const { status, closeCode } = await client.done;
    expect([JSON.parse(status).status, closeCode]).toEqual(["Failure", 1000]);
    expect(status).toContain("the session was idle for too long");
    expect(await harness?.metric("sluice_streaming_sessions_ended_total")).toContainEqual(
      expect.stringContaining('cause="idle"} 1'),
    );
  });

  it("total duration: warned once and cut however busy it is", async () => {
    const client = await open("tty=true");
    for (let minute = 0; minute < 59; minute += 1) {
      await type(client, `minute ${minute}`);
      clock.advance(MINUTE);
    }
    const warning = "\r\nsluice: this session reaches its time limit in 60 s\r\n";
    await expect.poll(() => words(client)).toContain(warning);
    await type(client, "more");
    clock.advance(MINUTE);
    expect((await client.done).status).toContain("the session reached its time limit");
    expect(await harness?.metric("sluice_streaming_sessions_ended_total")).toContainEqual(
      expect.stringContaining('cause="time-limit"} 1'),
    );
    expect(words(client).filter((text) => text === warning)).toHaveLength(1);
  });

  it("without a terminal nothing is mixed into the output", async () => {
    const client = await open("tty=false");
    clock.advance(9 * MINUTE);
    clock.advance(MINUTE);
    expect((await client.done).stdout.toString()).toBe("ready");
    expect((await client.done).status).toContain("the session was idle for too long");
  });
});
