import { randomBytes } from "node:crypto";
import { type ClientHttp2Session, type ClientHttp2Stream, constants } from "node:http2";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { HeaderLine } from "../../../packages/client/src/http/header-list.ts";
import { dial, Target } from "../../../packages/client/src/index.ts";
import { SessionClock } from "../../../packages/client/src/net/session-clock.ts";
import {
  type AnsweredUpgrade,
  resumingSocket,
} from "../../../packages/client/src/sessions/resuming-client.ts";
import {
  encodeOffer,
  parseAgreement,
  RESUME_HEADER,
  RESUME_PROTOCOL,
} from "../../../protocols/resume/index.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { connectHttp2, openSwitched } from "../../support/http2-client.ts";
import { startTestGateway, type TestGateway } from "../../support/test-gateway.ts";
import { clientSocketOver } from "../../support/tunnel-client.ts";
import { TWO_NODES } from "../../support/two-nodes.ts";
import { V5Client } from "../../support/v5-client.ts";

const MIB = 1024 * 1024;
const NO_CUTS = { cutAfterBytes: Number.POSITIVE_INFINITY, maxCuts: 0 };
const clock = new SessionClock();

let gateway: TestGateway;
const stops: (() => unknown)[] = [];
beforeAll(async () => {
  gateway = await startTestGateway(TWO_NODES);
});
afterAll(() => gateway?.stop());
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function proxied(): Promise<FaultProxy> {
  const proxy = await startFaultProxy(Number(new URL(gateway.apiServerUrl).port), NO_CUTS);
  stops.push(() => proxy.close());
  return proxy;
}

/** Node's HTTP/2 client may not notice that its connection was reset while it writes: silence tells. */
const QUICK = { pingIntervalMs: 100, silenceMs: 1_000 };

/** A client whose sessions are streams of one HTTP/2 connection, until it takes another one. */
class StreamClient {
  readonly #url: string;
  #connection: Promise<ClientHttp2Session> | undefined;
  /** The stream of the session that was opened or resumed last. */
  stream: ClientHttp2Stream | undefined;

  constructor(proxy: FaultProxy) {
    this.#url = `https://127.0.0.1:${proxy.port}`;
    stops.push(() => this.disconnect());
  }

  disconnect(): void {
    const known = this.#connection;
    this.#connection = undefined;
    void known?.then((connection) => connection.destroy()).catch(() => {});
  }

  async upgrade(path: string, protocols: string, [name, value]: HeaderLine): Promise<AnsweredUpgrade> {
    const headers = {
      authorization: `Bearer ${gateway.token}`,
      "sec-websocket-protocol": protocols,
      [name.toLowerCase()]: value,
    };
    this.#connection ??= connectHttp2(this.#url);
    const answer = await openSwitched(await this.#connection, path, headers);
    if ("status" in answer) throw new Error(`refused with ${answer.status}: ${answer.body}`);
    this.stream = answer.stream;
    const responseHeaders = Object.entries(answer.head).map(([key, text]) => [key, String(text)] as const);
    return { socket: answer.stream, head: Buffer.alloc(0), responseHeaders };
  }
}

const execPath = (pod: string): string => `/api/v1/namespaces/default/pods/${pod}/exec`;

/** `cat` in a pod, over a session that goes on with whatever `redial` brings. */
async function openCat(
  pod: string,
  client: StreamClient,
  redial: (line: HeaderLine) => Promise<AnsweredUpgrade> = (line) =>
    client.upgrade(execPath(pod), RESUME_PROTOCOL, line),
) {
  const path = execPath(pod);
  const offered = `v5.channel.k8s.io, ${RESUME_PROTOCOL}`;
  const offer = [RESUME_HEADER, encodeOffer({ windowBytes: MIB })] as const;
  const first = await client.upgrade(`${path}?stdin=true&stdout=true&command=cat`, offered, offer);
  const line = first.responseHeaders.find(([name]) => name === RESUME_HEADER.toLowerCase());
  const agreement = parseAgreement(line?.[1] ?? "");
  if (agreement === undefined) throw new Error("no agreement");
  const notes: string[] = [];
  const socket = resumingSocket(first, agreement, {
    clock,
    redial,
    isFinal: () => false,
    heartbeat: QUICK,
    note: (text) => void notes.push(text),
  });
  const resumed = () => notes.filter((text) => text === "session resumed").length;
  return { resumed, command: new V5Client(clientSocketOver(socket, Buffer.alloc(0))) };
}

/** Sends 1 MiB in eleven parts, breaks what carries it behind each of the first ten, and expects all of it back. */
async function brokenTenTimes(command: V5Client, resumed: () => number, breakIt: () => void): Promise<void> {
  const input = randomBytes(MIB);
  for (let times = 0; times < 10; times += 1) {
    command.send(0, input.subarray(times * 50_000, (times + 1) * 50_000));
    breakIt();
    await expect.poll(resumed).toBe(times + 1);
  }
  command.send(0, input.subarray(500_000));
  command.closeStdin();
  const { stdout, status, closeCode } = await command.done;
  expect([stdout.equals(input), JSON.parse(status).status, closeCode]).toEqual([true, "Success", 1000]);
}

describe.each(["web", "web-ws"])("a resumable session on an HTTP/2 stream, of the pod %s", (pod) => {
  it("goes on over the streams of new connections when its connection is cut, 10 times", async () => {
    const proxy = await proxied();
    const client = new StreamClient(proxy);
    const { command, resumed } = await openCat(pod, client, (line) => {
      client.disconnect();
      return client.upgrade(execPath(pod), RESUME_PROTOCOL, line);
    });
    await brokenTenTimes(command, resumed, () => proxy.cutAll());
    expect(proxy.cuts).toBeGreaterThanOrEqual(10);
  });

  it("goes on over other streams of its connection when its own is reset, and no other session notices", async () => {
    const proxy = await proxied();
    const client = new StreamClient(proxy);
    const beside = await openCat(pod, client);
    const { command, resumed } = await openCat(pod, client);
    await brokenTenTimes(command, resumed, () => client.stream?.close(constants.NGHTTP2_CANCEL));
    beside.command.closeStdin();
    expect((await beside.command.done).status).toContain("Success");
    expect(beside.resumed()).toBe(0);
    expect(proxy.connections).toBe(1);
  });

  it("goes on over a connection of HTTP/1.1", async () => {
    const proxy = await proxied();
    const client = new StreamClient(proxy);
    const target = new Target({
      url: gateway.apiServerUrl,
      proxy: "none",
      tls: { insecureSkipVerify: true },
      headers: () => [["Authorization", `Bearer ${gateway.token}`]],
    });
    const path = execPath(pod);
    const { command, resumed } = await openCat(pod, client, (line) =>
      dial(target, { path, transport: "websocket", protocols: [RESUME_PROTOCOL], headers: [line] }),
    );
    command.send(0, "over HTTP/2, ");
    await expect.poll(() => command.messages.length).toBeGreaterThan(0);
    proxy.cutAll();
    await expect.poll(resumed).toBe(1);
    command.send(0, "over HTTP/1.1");
    command.closeStdin();
    expect((await command.done).stdout.toString()).toBe("over HTTP/2, over HTTP/1.1");
  });
});
