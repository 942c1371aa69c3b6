import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { GatewayFiles } from "../../support/gateway-files.ts";
import { type ServedGateway, serveGateway } from "../../support/served-gateway.ts";
import { readMetricsOf } from "../../support/taken-path.ts";

// The bound under test.
const MAX_UNCAUGHT_EXCEPTIONS = 10;

/** Each signal is an exception, or a rejection, that nothing catches. */
const THROW_ON_SIGNAL =
  "data:text/javascript,process.on('SIGURG',()=>{throw new Error('injected')}).on('SIGCONT',()=>{Promise.reject(new Error('rejected'))})";

const files = new GatewayFiles({});
let gateway: ServedGateway | undefined;
afterEach(() => {
  gateway?.child.kill("SIGKILL");
  files.remove();
});

describe("an exception that nothing catches", () => {
  it("is logged with its stack and counted, and the process goes on; ten in a minute end it, drained, with 1", async () => {
    gateway = await serveGateway(files.configurationFile, { nodeArguments: ["--import", THROW_ON_SIGNAL] });
    const { child, adminUrl, exited, log, logLines } = gateway;
    for (let count = 1; count < MAX_UNCAUGHT_EXCEPTIONS; count++) {
      child.kill(count % 2 === 0 ? "SIGCONT" : "SIGURG");
      await eventually(`${count} are counted`, async () => {
        const metrics = await readMetricsOf(adminUrl);
        return metrics.get('sluice_internal_errors_total{where="process"}') === count;
      });
    }
    expect((await fetch(new URL("/readyz", adminUrl))).status).toBe(200);
    const [first] = logLines().filter(({ level }) => level === "error");
    expect(first).toMatchObject({ where: "process", error: { message: "injected" } });
    expect((first?.error as Error).stack).toContain("at ");
    child.kill("SIGURG");
    expect(await exited).toEqual([1, null]);
    expect(log()).toContain("the gateway has stopped");
  });
});
