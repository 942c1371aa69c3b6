import { execFile } from "node:child_process";
import { createPrivateKey } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { connect } from "node:tls";
import { promisify } from "node:util";
import { SignJWT } from "jose";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { evidenceTable } from "../../support/evidence-table.ts";
import { describeReal, isFullRun } from "../../support/real-parts.ts";
import { issueCertificate } from "../../support/test-certificates.ts";
import { type Access, type Door, type DoorName, type Doors, openDoors } from "../doors.ts";
import { ADDRESSES } from "../kubernetes/credentials.ts";
import type { Daemon } from "../kubernetes/daemon.ts";
import { pod, roleBinding } from "../kubernetes/objects.ts";
import { applyObjects, type RunningCluster, startCluster } from "../kubernetes/start-cluster.ts";
import { DoorWatch, newSession } from "./door-watch.ts";

const DOORS: readonly DoorName[] = ["straight", "gateway", "node"];
const OUTAGE_MS = 10_000;
const ETCD_PAUSE_MS = isFullRun ? 60_000 : 15_000;
/** kube-apiserver takes tokens a minute past their times. */
const LEEWAY_SECONDS = 60;

const rows: string[][] = [];

describeReal("cluster", "a failure of a part of the cluster", () => {
  let cluster: RunningCluster;
  let opened: Doors | undefined;
  beforeAll(async () => {
    cluster = await startCluster();
    opened = await openDoors(cluster, DOORS);
  });
  afterAll(async () => {
    await opened?.stop();
    await cluster?.stop();
    if (process.env.SLUICE_WRITE_DOCS === "1" && isFullRun) writeTable(cluster.version);
  });

  const kubectl = async (...args: string[]): Promise<string> => {
    const program = path.join(cluster.programs, "kubectl");
    return (await promisify(execFile)(program, ["--kubeconfig", cluster.adminKubeconfig, ...args])).stdout;
  };
  const apply = (...objects: object[]): Promise<void> =>
    applyObjects(path.join(cluster.programs, "kubectl"), cluster.adminKubeconfig, objects);
  const daemon = (name: string): Daemon => {
    const found = cluster.daemons.find((candidate) => candidate.name === name);
    if (found === undefined) throw new Error(`no ${name}`);
    return found;
  };
  const doorOf = (name: DoorName): Door => {
    const found = opened?.doors.find((door) => door.name === name);
    if (found === undefined) throw new Error(`no way ${name}`);
    return found;
  };

  /** Watches every way while `fail` happens and until all is well again; then a row of the table for each way. */
  const watch = async (
    title: string,
    fail: () => Promise<unknown>,
    { podName = "web", isOver = (row: DoorWatch, _: DoorName): boolean => row.isWell } = {},
  ): Promise<Record<DoorName, DoorWatch>> => {
    await carriesItself(doorOf("gateway"));
    const watches = await Promise.all(
      DOORS.map(async (name) => {
        const door = doorOf(name);
        return [
          name,
          await DoorWatch.start(await door.access("dev"), await door.access("viewer"), podName),
        ] as const;
      }),
    );
    try {
      for (const [, row] of watches) row.mark();
      await fail();
      for (const [, row] of watches) row.markOver();
      const states = (): string =>
        watches.map(([name, row]) => `${name}: ${row.states().join(", ")}`).join("; ");
      await eventually(
        () => `all is over (${states()})`,
        () => watches.every(([name, row]) => row.isFresh && isOver(row, name)),
        {
          timeoutMs: 120_000,
          intervalMs: 100,
        },
      );
    } finally {
      for (const [name, row] of watches) {
        await row.stop();
        rows.push([title, name, ...row.cells]);
      }
    }
    for (const [name, row] of watches) expect.soft([name, row.denied.has("works")]).toEqual([name, false]);
    return Object.fromEntries(watches) as Record<DoorName, DoorWatch>;
  };

  it("API servers killed, back after 10 s: sessions through the gateway go on", async () => {
    const servers = [daemon("apiserver"), daemon("apiserver-2")];
    const { gateway, straight } = await watch("API servers killed, back after 10 s", async () => {
      await Promise.all(servers.map((server) => server.stop("SIGKILL")));
      await delay(OUTAGE_MS);
      for (const server of servers) server.start();
    });
    expect(straight.session.last).toContain("ended");
    expect(gateway.session.last).toBe("echoes");
    expect(gateway.opened.last).toBe("works");
  }, 300_000);

  it("etcd paused: sessions go on everywhere", async () => {
    const { pid } = daemon("etcd");
    const watches = await watch(`etcd paused for ${ETCD_PAUSE_MS / 1_000} s`, async () => {
      process.kill(pid, "SIGSTOP");
      await delay(ETCD_PAUSE_MS).finally(() => process.kill(pid, "SIGCONT"));
    });
    for (const name of DOORS) expect.soft([name, watches[name].session.last]).toEqual([name, "echoes"]);
  }, 300_000);

  it("kubelet restarted: only what it carries ends", async () => {
    const kubelet = daemon("kubelet");
    const { node } = await watch("kubelet restarted", async () => {
      await kubelet.stop();
      kubelet.start();
    });
    // Sluice speaks with the runtime itself.
    expect(node.session.last).toBe("echoes");
  }, 300_000);

  it("containerd killed and started again: new sessions work again", async () => {
    const { node } = await watch("containerd killed and started", () => cluster.restartContainerd());
    expect(node.opened.last).toBe("works");
  }, 300_000);

  it("a drained node: sessions end with their pod", async () => {
    await apply(pod("drained", [{ name: "main", command: ["sleep", "infinity"] }]));
    await kubectl("wait", "--for=condition=Ready", "--timeout=60s", "pod/drained");
    const isOver = ({ session, opened: next }: DoorWatch): boolean =>
      session.last.startsWith("ended") && next.last === "404";
    try {
      const watches = await watch(
        "node drained",
        () => kubectl("drain", "worker-1", "--force", "--pod-selector=app=drained"),
        { podName: "drained", isOver },
      );
      for (const name of DOORS)
        expect.soft([name, watches[name].session.last]).toEqual([name, watches.straight.session.last]);
    } finally {
      await kubectl("uncordon", "worker-1");
    }
  }, 300_000);

  it("certificates rotated: new ones are served, and sessions through the gateway go on", async () => {
    const file = (name: string): string => path.join(cluster.credentials, name);
    const authority = {
      cert: readFileSync(file("ca.crt"), "utf8"),
      key: readFileSync(file("ca.key"), "utf8"),
    };
    const before = new Map<DoorName, string>();
    for (const name of DOORS) before.set(name, await serialOf(await doorOf(name).access("dev")));
    const renewedAfter = new Map<DoorName, string>();
    // client-go closes every connection of a certificate that was replaced, upgraded ones included.
    const isOver = (row: DoorWatch, name: DoorName): boolean =>
      row.isWell && (name === "gateway" || row.session.last.startsWith("ended"));
    const { gateway } = await watch(
      "serving and kubelet client certificates rotated",
      async () => {
        const startMs = performance.now();
        for (const name of ["apiserver", "sluice-serving", "kubelet-serving"]) {
          const addresses = ["127.0.0.1", ...Object.values(ADDRESSES)];
          const renewed = await issueCertificate({ commonName: name }, authority, {
            usage: "server",
            addresses,
          });
          writeFileSync(file(`${name}.crt`), renewed.cert);
          writeFileSync(file(`${name}.key`), renewed.key);
        }
        const subject = {
          commonName: "kube-apiserver-kubelet-client",
          organizations: ["kubeadm:apiserver-kubelet"],
        };
        const client = await issueCertificate(subject, authority, { usage: "client" });
        writeFileSync(file("apiserver-kubelet-client.crt"), client.cert);
        writeFileSync(file("apiserver-kubelet-client.key"), client.key);
        for (const name of DOORS) {
          const access = await doorOf(name).access("dev");
          await eventually(
            `${name} serves the new one`,
            async () => (await serialOf(access)) !== before.get(name),
            {
              timeoutMs: 120_000,
              intervalMs: 200,
            },
          );
          renewedAfter.set(name, ((performance.now() - startMs) / 1_000).toFixed(1));
        }
      },
      { isOver },
    );
    for (const name of DOORS)
      rows.push(["the new certificate is served", name, `after ${renewedAfter.get(name)} s`, "", "", ""]);
    expect(gateway.session.last).toBe("echoes");
  }, 300_000);

  /** Signed as the API server signs them, with times that no request for a token gives. */
  const tokenOf = async (uid: string, startSeconds: number, endSeconds: number): Promise<string> => {
    const now = Math.floor(Date.now() / 1_000);
    const key = createPrivateKey(readFileSync(path.join(cluster.credentials, "service-accounts.key")));
    const serviceaccount = { name: "shifted", uid };
    return new SignJWT({ "kubernetes.io": { namespace: "default", serviceaccount } })
      .setProtectedHeader({ alg: "RS256" })
      .setIssuer("https://kubernetes.default.svc")
      .setSubject("system:serviceaccount:default:shifted")
      .setAudience("https://kubernetes.default.svc")
      .setIssuedAt(now + startSeconds)
      .setNotBefore(now + startSeconds)
      .setExpirationTime(now + endSeconds)
      .sign(key);
  };
  const shiftedAccount = async (): Promise<string> => {
    const metadata = { name: "shifted", namespace: "default" };
    const subject = { kind: "ServiceAccount", ...metadata };
    await apply(
      { apiVersion: "v1", kind: "ServiceAccount", metadata },
      roleBinding("shifted", "devs", subject),
    );
    return kubectl("get", "serviceaccount", "shifted", "-o", "jsonpath={.metadata.uid}");
  };
  const withToken = async (name: DoorName, token: string): Promise<Access> => {
    const { url, ca, kubeconfig } = await doorOf(name).access("nobody");
    return { url, ca, kubeconfig, token };
  };

  it("a ServiceAccount's token that expires: the gateway ends its sessions, and new ones are refused", async () => {
    const token = await tokenOf(await shiftedAccount(), -600, 15 - LEEWAY_SECONDS);
    const watches = await Promise.all(
      DOORS.map(async (name) => {
        const access = await withToken(name, token);
        const row = await DoorWatch.start(access, await doorOf(name).access("viewer"));
        row.mark();
        return [name, row] as const;
      }),
    );
    await eventually(
      "new sessions are refused",
      () => watches.every(([, row]) => row.opened.last === "401"),
      {
        // Not as long as the gateway caches reviews.
        timeoutMs: 60_000,
        intervalMs: 100,
      },
    );
    for (const [name, row] of watches) {
      await row.stop();
      rows.push(["token expires (15 s, with the leeway)", name, ...row.cells]);
      const last = name === "gateway" ? /^ended: .*credentials have expired/ : /^echoes$/;
      expect.soft([name, row.session.last]).toEqual([name, expect.stringMatching(last)]);
    }
  }, 300_000);

  it.each([
    ["issued by a clock 30 s ahead", 30, 3_600],
    ["issued by a clock 5 min ahead", 300, 3_600],
    ["expired 30 s ago", -3_600, -30],
    ["expired 5 min ago", -3_600, -300],
  ])("a token %s is judged as straight", async (title, startSeconds, endSeconds) => {
    const token = await tokenOf(await shiftedAccount(), startSeconds, endSeconds);
    const outcomes = await Promise.all(DOORS.map(async (name) => newSession(await withToken(name, token))));
    rows.push(...DOORS.map((name, index) => [`token ${title}`, name, "", outcomes[index] ?? "", "", ""]));
    expect(outcomes).toEqual(DOORS.map(() => outcomes[0]));
  });
});

/** Until the gateway knows that no admission judges sessions, the API server carries them (decision 44). */
async function carriesItself(gateway: Door): Promise<void> {
  const access = await gateway.access("dev");
  const ways = (): string[] =>
    gateway
      .log()
      .split("\n")
      .filter((line) => line.includes('"msg":"session started"'));
  await eventually(
    () => `the gateway carries sessions itself: ${ways().at(-1)}`,
    async () => {
      const before = ways().length;
      await newSession(access);
      return ways()
        .slice(before)
        .some((line) => !JSON.parse(line).session.reason.startsWith("admission-"));
    },
    { timeoutMs: 60_000, intervalMs: 500 },
  );
}

function serialOf({ url, ca }: Access): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), ca }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

function writeTable(version: string): void {
  const head = ["failure", "way", "session", "new sessions", "GET of the pod", "not allowed"];
  const text = `# Failures of a real cluster

With Sluice in front, sessions and new sessions survive failures of the API servers and etcd; with Sluice
as the node, they survive a kubelet's restart. No failure lets in a user without permission.

| word | meaning |
|---|---|
| straight | kube-apiserver with the kubelet behind it |
| gateway | Sluice in front of that |
| node | kube-apiserver with Sluice as the kubelet |
| session | opened before the failure; sends a line with each probe |
| not allowed | a new session of a user with read permission only |

Times count from the failure. A probe begins 0.25 s after the last one and waits 5 s. No webhook or policy
judges sessions here; if one does, the API server carries them, and they end with it.

${evidenceTable(head, rows, [1])}

Kubernetes ${version}: two API servers, etcd, a kubelet and containerd on one machine. Written by
\`SLUICE_WRITE_DOCS=1 npm run test:cluster -- test/cluster/failures\`.
`;
  writeFileSync(path.resolve(import.meta.dirname, "../../../docs/evidence/cluster-failures.md"), text);
}
