import { expect, it, vi } from "vitest";
import { WebSocket } from "ws";
import { eventually } from "../../support/eventually.ts";
import { TESTER_TOKEN } from "../../support/gateway-files.ts";
import { authorityOf, type RunningWorkers, readJson, startWorkerReplicas } from "../../support/replicas.ts";
import { V5Client } from "../../support/v5-client.ts";

/** Six processes start, on machines that are busy with other tests. */
vi.setConfig({ testTimeout: 120_000 });

const HEADERS = { Authorization: `Bearer ${TESTER_TOKEN}` };
const COLLECTION = "/apis/sluice.dev/v1alpha1/namespaces/default/streamingsessions";

function join(gateway: RunningWorkers, name: string): V5Client {
  const url = `ws://${authorityOf(gateway)}${COLLECTION}/${name}/attach`;
  return new V5Client(
    new WebSocket(url, "v5.channel.k8s.io", { perMessageDeflate: false, headers: HEADERS }),
  );
}

it("a session is joined from any worker of any replica, in order, and its end is everybody's", async () => {
  const [one, other] = await startWorkerReplicas();
  const owner = new V5Client(authorityOf(one), "stdin=true&stdout=true&command=cat", "exec", HEADERS);
  await owner.opened;
  const [{ id: name = "" } = {}] = await eventually("it runs", async () => {
    const sessions = (await readJson(`${one.adminUrl}/debug/sessions`)) as { id: string }[];
    return sessions.length === 1 && sessions;
  });
  // Connections are dealt out to the workers in turn: both of each replica.
  const joiners = [one, one, other, other].map((gateway) => join(gateway, name));
  await Promise.all(joiners.map(({ opened }) => opened));
  const lines = (who: number): string[] => Array.from({ length: 20 }, (_, line) => `${who}:${line}\n`);
  for (const [who, joiner] of joiners.entries()) for (const line of lines(who)) joiner.send(0, line);
  const everyone = [owner, ...joiners];
  await eventually("everyone sees every line", () =>
    everyone.every((each) => joiners.every((_, who) => each.text.includes(`${who}:19\n`))),
  );
  for (const [who] of joiners.entries())
    for (const each of everyone) {
      const seen = each.text.match(new RegExp(`${who}:\\d+\n`, "g"));
      expect(seen).toEqual(lines(who));
    }
  const listed = async () => {
    const answer = await fetch(`${other.apiServerUrl}${COLLECTION}`, { headers: HEADERS });
    return (await answer.json()) as { items: { status: { joiners?: string[] } }[] };
  };
  expect((await listed()).items[0]?.status.joiners).toEqual(["tester"]);
  owner.closeStdin();
  for (const { done } of everyone) {
    const { status, closeCode } = await done;
    expect([JSON.parse(status).status, closeCode]).toEqual(["Success", 1000]);
  }
});
