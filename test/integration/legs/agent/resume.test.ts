import { createHash, randomBytes } from "node:crypto";
import { Readable, Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type Executor,
  execPath,
  SpdyExecutor,
  WebSocketExecutor,
} from "../../../../packages/client/src/index.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";
import { TESTER_TOKEN } from "../../../support/gateway-files.ts";
import { ResumableGateway } from "../../../support/resumable-gateway.ts";
import { TestAgent } from "../../../support/test-agent.ts";

const MIB = 1024 * 1024;
const path = execPath({ namespace: "default", pod: "web", container: "main" }, ["sh", "-c", "cat; exit 7"]);

describe("a session through an agent to a Sluice, over connections that are cut", () => {
  let gateway: ResumableGateway;
  let proxy: FaultProxy;
  let agent: TestAgent;

  beforeEach(async () => {
    gateway = await ResumableGateway.start();
    proxy = await startFaultProxy(gateway.port, { cutAfterBytes: 300_000, maxCuts: 10 });
    agent = await TestAgent.start({
      server: `http://127.0.0.1:${proxy.port}`,
      user: { token: TESTER_TOKEN },
    });
  });
  afterEach(async () => {
    await agent.stop();
    await gateway.stop();
    await proxy.close();
  });

  it.each([
    ["SPDY", () => new SpdyExecutor(agent.target(), path)],
    ["WebSocket v5", () => new WebSocketExecutor(agent.target(), path)],
  ])("of a %s client that knows nothing of it brings every byte once", async (_name, executorOf) => {
    const input = randomBytes(4 * MIB);
    const stdout = new Digest();
    const executor: Executor = executorOf();
    const chunks = Array.from({ length: 64 }, (_, index) =>
      input.subarray(index * 65_536, (index + 1) * 65_536),
    );
    const end = await executor.stream({ stdin: Readable.from(chunks), stdout });
    expect(end.exitCode).toBe(7);
    const sent = createHash("sha256").update(input).digest("hex");
    expect(stdout.hex()).toBe(sent);
    expect(proxy.cuts).toBe(10);
    expect(
      (await gateway.metrics()).get('sluice_session_resumptions_total{result="resumed"}'),
    ).toBeGreaterThanOrEqual(10);
    expect(agent.told.filter((text) => text.includes("session resumed")).length).toBeGreaterThanOrEqual(10);
  });

  it("ends with a failure where the gateway is gone for good", async () => {
    const executor = new SpdyExecutor(agent.target(), path);
    let isRunning: () => void = () => {};
    const running = new Promise<void>((resolve) => {
      isRunning = resolve;
    });
    const stdin = new Readable({ read() {} });
    stdin.push("a line\n");
    const stdout = new Writable({
      write(_chunk, _encoding, done) {
        isRunning();
        done();
      },
    });
    const failed = expect(executor.stream({ stdin, stdout })).rejects.toThrow();
    await running;
    await gateway.stop();
    await failed;
    stdin.destroy();
    gateway = await ResumableGateway.start();
  });
});

class Digest extends Writable {
  readonly #hash = createHash("sha256");

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#hash.update(chunk);
    done();
  }

  hex(): string {
    return this.#hash.digest("hex");
  }
}
