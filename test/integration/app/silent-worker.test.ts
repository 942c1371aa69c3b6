import { Agent, get } from "node:http";
import { afterEach, expect, it, vi } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { TESTER_TOKEN } from "../../support/gateway-files.ts";
import { WorkerGateway } from "../../support/worker-gateway.ts";

vi.setConfig({ testTimeout: 60_000 });

const SESSIONS = "/apis/sluice.dev/v1alpha1/streamingsessions";
const WARNING = '299 - "the list may be incomplete: no answer from worker 1"';

let gateway: WorkerGateway;
let stopped: number | undefined;
const agents: Agent[] = [];
afterEach(async () => {
  if (stopped !== undefined) process.kill(stopped, "SIGCONT");
  stopped = undefined;
  for (const agent of agents.splice(0)) agent.destroy();
  await gateway.stop();
});

interface Answer {
  readonly warning: string | undefined;
  readonly names: readonly string[];
}

/** Undefined: the connection's worker does not answer. */
function list(agent: Agent): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    const headers = { Authorization: `Bearer ${TESTER_TOKEN}` };
    const request = get(`http://${gateway.authority}${SESSIONS}`, { agent, headers, timeout: 5_000 });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(undefined));
    request.on("response", async (response) => {
      let text = "";
      for await (const part of response) text += part;
      const { items } = JSON.parse(text) as { items: { metadata: { name: string } }[] };
      const names = items.map(({ metadata }) => metadata.name).sort();
      resolve({ warning: response.headers.warning, names });
    });
  });
}

it("lists name a worker that does not answer, and keep what they had of it", async () => {
  gateway = await WorkerGateway.start({});
  const clients = Array.from({ length: 6 }, () => gateway.exec());
  await Promise.all(clients.map(({ opened }) => opened));
  const sessions = await gateway.listed(6);
  const names = sessions.map(({ id }) => id).sort();
  const own = sessions.filter(({ worker }) => worker === 0).length;
  expect(own).toBeGreaterThan(0);
  expect(own).toBeLessThan(6);
  // One connection each, with either worker.
  agents.push(...Array.from({ length: 4 }, () => new Agent({ keepAlive: true, maxSockets: 1 })));
  const whole = { warning: undefined, names };
  expect(await Promise.all(agents.map(list))).toEqual([whole, whole, whole, whole]);

  stopped = gateway.pidOf(1);
  process.kill(stopped, "SIGSTOP");
  const answers = await Promise.all(agents.map(list));
  const answered = answers.filter((answer) => answer !== undefined);
  expect(answered.length).toBeGreaterThan(0);
  for (const answer of answered) expect(answer).toEqual({ warning: WARNING, names });
  const all = JSON.parse(await gateway.admin("/sessions")) as { partial: object[]; sessions: object[] };
  expect(all.partial).toEqual([{ worker: 1, problem: "the worker does not answer" }]);
  expect(all.sessions).toHaveLength(own);

  process.kill(stopped, "SIGCONT");
  stopped = undefined;
  await eventually("the lists are whole again", async () => {
    const again = await Promise.all(agents.map(list));
    return again.every((each) => each?.warning === undefined && String(each?.names) === String(names));
  });
});
