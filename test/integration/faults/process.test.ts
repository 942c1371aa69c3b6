import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { MAX_UNCAUGHT_EXCEPTIONS } from "../../../src/app/uncaught-exceptions.ts";
import { builtProgram } from "../../support/built-program.ts";
import { eventually } from "../../support/eventually.ts";
import { collect } from "../../support/kubectl.ts";
import { PlainGatewayFiles } from "../../support/plain-gateway.ts";
import { readMetricsOf } from "../../support/taken-path.ts";

/** Each signal is an exception, or a rejection, that nothing catches. */
const THROW_ON_SIGNAL =
  "data:text/javascript,process.on('SIGUSR2',()=>{throw new Error('injected')}).on('SIGCONT',()=>{Promise.reject(new Error('rejected'))})";

let files: PlainGatewayFiles | undefined;
let child: ChildProcess | undefined;
afterEach(() => {
  child?.kill("SIGKILL");
  files?.remove();
});

describe("an exception that nothing catches", () => {
  it("is logged with its stack and counted, and the process goes on; ten in a minute end it, drained, with 1", async () => {
    files = new PlainGatewayFiles({ kubeletPort: 1 });
    const started = spawn(
      process.execPath,
      ["--import", THROW_ON_SIGNAL, builtProgram(), "serve", "--config", files.configurationFile],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    child = started;
    const exited = once(started, "exit");
    const stderr = collect(started.stderr);
    const lines = () =>
      stderr()
        .split("\n")
        .filter((line) => line.startsWith("{"))
        .map((line) => JSON.parse(line));
    await eventually("it is ready", () => stderr().includes("the gateway is ready"));
    const { adminUrl } = lines().find(({ msg }) => msg === "the gateway is ready");
    for (let count = 1; count < MAX_UNCAUGHT_EXCEPTIONS; count++) {
      started.kill(count % 2 === 0 ? "SIGCONT" : "SIGUSR2");
      await eventually(`${count} are counted`, async () => {
        const metrics = await readMetricsOf(adminUrl);
        return metrics.get('sluice_internal_errors_total{where="process"}') === count;
      });
    }
    expect((await fetch(new URL("/readyz", adminUrl))).status).toBe(200);
    const [first] = lines().filter(({ level }) => level === "error");
    expect(first).toMatchObject({ where: "process", error: { message: "injected" } });
    expect(first.error.stack).toContain("at ");
    started.kill("SIGUSR2");
    expect(await exited).toEqual([1, null]);
    expect(stderr()).toContain("the gateway has stopped");
  });
});
