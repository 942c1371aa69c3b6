import { afterEach, expect, it } from "vitest";
import { eventually } from "../../../../support/eventually.ts";
import { clusterRole, clusterRoleBinding, resourceRule } from "../../../../support/rbac-objects.ts";
import { startTestGateway, type TestGateway } from "../../../../support/test-gateway.ts";
import { V5Client } from "../../../../support/v5-client.ts";

const USERS = ["ana-token,ana,1", "ben-token,ben,2", "portal-token,portal,3"];
const ROLES = [
  clusterRole("shells", resourceRule("get,create||pods/exec")),
  clusterRole("stand-ins", resourceRule("impersonate||users")),
];
const granted = (...users: string[]) =>
  users.map((user) => clusterRoleBinding(`shells-${user}`, "ClusterRole/shells", `User:${user}`));
const PORTAL = clusterRoleBinding("portal-stands-in", "ClusterRole/stand-ins", "User:portal");

let gateway: TestGateway;
afterEach(() => gateway?.stop());

const options = (manifests: readonly object[]) => ({
  scheme: "http" as const,
  users: USERS,
  manifests: [...ROLES, ...manifests] as never,
  configuration: { authorization: { mode: ["RBAC"] }, sessions: { reauthorizeInterval: "1s" } },
});

async function shell(token: string, headers: Record<string, string> = {}): Promise<V5Client> {
  const client = new V5Client(gateway.authority, "stdin=true&stdout=true&command=cat", "exec", {
    Authorization: `Bearer ${token}`,
    ...headers,
  });
  await client.opened;
  return client;
}

/** Takes bindings away. */
async function unbind(...names: string[]): Promise<void> {
  const list = JSON.parse(gateway.files.read("cluster.json")) as {
    items: { metadata: { name: string } }[];
  };
  const items = list.items.filter(({ metadata }) => !names.includes(metadata.name));
  expect(items).toHaveLength(list.items.length - names.length);
  gateway.files.write("cluster.json", JSON.stringify({ ...list, items }));
  await gateway.reload();
}

it("a binding that goes ends its user's sessions, and no other's", async () => {
  const all = [...granted("ana", "ben", "carl"), PORTAL];
  gateway = await startTestGateway({ ...options(all), fakeNodes: [{}] });
  const [ana, ben, carl] = [
    await shell("ana-token"),
    await shell("ben-token"),
    await shell("portal-token", { "Impersonate-User": "carl" }),
  ];
  // Ana may not any more, nor may the portal stand in for Carl, who himself still may.
  await unbind("shells-ana", "portal-stands-in");
  for (const [client, refusal] of [
    [ana, 'pods \\"web\\" is forbidden: User \\"ana\\" cannot get resource \\"pods/exec\\"'],
    [carl, 'users \\"carl\\" is forbidden: User \\"portal\\" cannot impersonate resource \\"users\\"'],
  ] as const) {
    const { status, closeCode } = await client.done;
    expect(closeCode).toBe(1000);
    expect(status).toContain(`"message":"the session was ended: ${refusal}`);
    expect(JSON.parse(status)).toMatchObject({
      status: "Failure",
      code: 403,
      details: { causes: [{ reason: "sluice.dev/SessionEnded", message: "authorization-revoked" }] },
    });
  }
  const running = gateway.running.sessions.list();
  expect(running.map(({ user }) => user)).toEqual(["ben"]);
  const allowed = async () =>
    (await gateway.readMetrics()).get('sluice_session_reauthorizations_total{result="allowed"}') ?? 0;
  const before = await allowed();
  await eventually("Ben's session is checked again", async () => (await allowed()) > before);
  expect(ben.socket.readyState).toBe(ben.socket.OPEN);
  ben.socket.terminate();
});
