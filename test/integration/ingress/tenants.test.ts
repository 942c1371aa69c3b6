import { once } from "node:events";
import { connect } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import { resourceOfKind } from "../../support/api-server/resources.ts";
import { TestApiServer } from "../../support/api-server/test-api-server.ts";
import { eventually } from "../../support/eventually.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { statusOf } from "./ask.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const rule = (host: string, path: string) => ({
  host,
  http: { paths: [{ path, pathType: "Prefix", backend: backend("app") }] },
});
const created = (namespace: string, year: number) => ({
  namespace,
  creationTimestamp: `${year}-01-01T00:00:00Z`,
});

/** `one` names a.example.com first; `two` adds a path, a certificate and a default backend. */
async function doorOfTwoTenants(ingress: object) {
  const api = await TestApiServer.start();
  closing.push(() => api.stop());
  const door = await FrontDoor.start([], ingress, {}, api);
  closing.push(() => door.stop());
  const pod = await door.addPod("app");
  const { certPem, keyPem } = await createSelfSignedCertificate(["a.example.com"], "of two");
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  door.write([
    ...["one", "two"].map((name) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } })),
    ...serviceObjects("app", [pod], { namespace: "one" }),
    ...serviceObjects("app", [pod], { namespace: "two" }),
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "a", namespace: "two" },
      type: "kubernetes.io/tls",
      data: { "tls.crt": base64(certPem), "tls.key": base64(keyPem) },
    },
    ingressObject("first", { rules: [rule("a.example.com", "/one")] }, created("one", 2020)),
    ingressObject(
      "second",
      {
        rules: [rule("a.example.com", "/")],
        tls: [{ hosts: ["a.example.com"], secretName: "a" }],
        defaultBackend: backend("app"),
      },
      created("two", 2021),
    ),
  ]);
  await door.serves(2);
  const problems = async () =>
    (await door.readMetrics()).get('sluice_ingress_problems{reason="HostOfAnotherNamespace"}');
  await eventually("the problem is counted", async () => (await problems()) === 1);
  const events = () => JSON.stringify(api.store.list(resourceOfKind("Event")));
  return { door, events };
}

async function subjectAt(port: number, servername: string): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", servername, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const { subject = "" } = socket.getPeerX509Certificate() ?? {};
  socket.destroy();
  return subject;
}

describe("a host that two namespaces name", () => {
  it.each([
    ["first", 404, false],
    ["shared", 200, true],
  ])("with hostOwnership %s answers %i at the second's path", async (hostOwnership, status, isShared) => {
    const { door, events } = await doorOfTwoTenants({ hostOwnership });
    expect(await statusOf(door.httpPort, "a.example.com")).toBe(status);
    expect(await statusOf(door.httpPort, "other.example.com")).toBe(200);
    await eventually(
      "the certificate",
      async () => (await subjectAt(door.httpsPort, "a.example.com")).includes("of two") === isShared,
    );
    const [line] = door.logged.filter((each) => each.includes("HostOfAnotherNamespace"));
    expect(JSON.parse(line ?? "{}")).toMatchObject({
      namespace: "two",
      ingress: "second",
      owner: "one/first",
    });
    await eventually("the Event", () => events().includes('"reason":"HostOfAnotherNamespace"'));
    // The other tenant's names are for the log alone.
    expect(events()).not.toContain("one/first");
  });
});
