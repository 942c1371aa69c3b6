import { createServer, type Server as HttpServer } from "node:http";
import { createServer as createH2c } from "node:http2";
import type { AddressInfo, Server } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { SessionClock } from "../../../../packages/client/src/net/session-clock.ts";
import type { ContainerStatus, Pod, PodStatus } from "../../../../src/api/objects.ts";
import type { Probe } from "../../../../src/api/probe-objects.ts";
import { ClusterStore } from "../../../../src/cluster/cluster-store.ts";
import { PodProbes } from "../../../../src/probes/pods/pod-probes.ts";
import type { RestartRequest } from "../../../../src/probes/pods/restart.ts";
import { runProbe } from "../../../../src/probes/run-probe.ts";
import { TimerWheel } from "../../../../src/probes/worker/timer-wheel.ts";
import { eventually } from "../../../support/eventually.ts";
import { startGrpcHealthServer } from "../../../support/grpc-health-server.ts";
import { closedPort, MISBEHAVIOURS, startServer } from "../../../support/misbehaving-servers.ts";
import { issueCertificate } from "../../../support/test-certificates.ts";

type PodProbesOptions = ConstructorParameters<typeof PodProbes>[0];

/** Seconds, so that a test takes no minute. */
const FAST = { periodSeconds: 0.02, timeoutSeconds: 0.3, failureThreshold: 2 };

const stops: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function listen(server: Server | HttpServer): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const serveHttp = (status: () => number): Promise<number> =>
  listen(createServer((request, response) => response.writeHead(status()).end(request.httpVersion)));

function runPod(
  probes: Record<string, Probe>,
  more: Partial<PodProbesOptions> = {},
  spec: object = {},
  ageSeconds = 60,
) {
  const store = new ClusterStore();
  const restarts: RestartRequest[] = [];
  const events: string[] = [];
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", namespace: "default", uid: "uid-1" },
    spec: { nodeName: "ours", restartPolicy: "Always", containers: [{ name: "main", ...probes }], ...spec },
    status: {
      phase: "Running",
      podIP: "127.0.0.1",
      containerStatuses: [
        { name: "main", restartCount: 0, state: { running: { startedAt: agoText(ageSeconds) } } },
      ],
    },
  };
  store.upsert(pod);
  const current = () => store.getPod("default", "web") as Pod;
  const status = () => current().status?.containerStatuses?.[0] as ContainerStatus;
  const setContainer = (change: Partial<ContainerStatus>): void => {
    const { resourceVersion: _, ...metadata } = current().metadata;
    const changed = { ...status(), ...change };
    store.upsert({ ...current(), metadata, status: { ...current().status, containerStatuses: [changed] } });
  };
  let attempts = 0;
  const podProbes = new PodProbes({
    pods: store,
    isOurs: (each) => each.spec.nodeName === "ours",
    publish: (each, published: PodStatus) => {
      const { resourceVersion: _, ...metadata } = each.metadata;
      store.upsert({ ...each, metadata, status: published });
    },
    restart: async (request) => {
      restarts.push(request);
      setContainer({
        restartCount: (status().restartCount ?? 0) + 1,
        state: { running: { startedAt: agoText(0) } },
      });
    },
    wheel: new TimerWheel(new SessionClock(5)),
    runProbe,
    gates: { H2CContainerProbe: true, GRPCContainerProbeTLS: true },
    userAgentVersion: "1.36",
    series: () => ({
      count: () => {
        attempts += 1;
      },
      remove: () => {},
    }),
    onEvent: (_, container, { type, reason, message }) =>
      events.push(`${type} ${reason} ${container}: ${message}`),
    onProblem: (_, error) => {
      throw error;
    },
    random: () => 0,
    ...more,
  });
  podProbes.start();
  stops.push(() => podProbes.stop());
  return { store, podProbes, restarts, events, status, current, setContainer, attempts: () => attempts };
}

const agoText = (seconds: number) => new Date(Date.now() - seconds * 1_000).toISOString();

const restarted = ({ restarts }: ReturnType<typeof runPod>) =>
  eventually("a restart", () => restarts.length >= 1);

/** After attempts enough for several thresholds. */
async function staysAlive(
  { restarts, status, ...node }: ReturnType<typeof runPod>,
  attempts = node.attempts,
): Promise<void> {
  const enough = attempts() + 4 * FAST.failureThreshold;
  await eventually("several attempts", () => attempts() >= enough);
  expect({ restarts: restarts.length, restartCount: status().restartCount }).toEqual({
    restarts: 0,
    restartCount: 0,
  });
}

describe("gRPC liveness probes (KEP-2727, KEP-4939)", () => {
  const tlsServer = async () => {
    const server = await startGrpcHealthServer(await issueCertificate({ commonName: "grpc" }));
    stops.push(server.stop);
    return server.port;
  };

  it("should *not* be restarted with a GRPC liveness probe", async () => {
    const server = await startGrpcHealthServer();
    stops.push(server.stop);
    await staysAlive(runPod({ livenessProbe: { grpc: { port: server.port }, ...FAST } }));
  });

  it("should be restarted with a GRPC liveness probe", async () => {
    const port = await closedPort();
    await restarted(runPod({ livenessProbe: { grpc: { port }, ...FAST, failureThreshold: 1 } }));
  });

  it("should *not* be restarted with a GRPC liveness probe with TLS mode", async () => {
    await staysAlive(runPod({ livenessProbe: { grpc: { port: await tlsServer(), mode: "TLS" }, ...FAST } }));
  });

  it("should be restarted with a GRPC liveness probe when not using TLS against a TLS server", async () => {
    await restarted(runPod({ livenessProbe: { grpc: { port: await tlsServer() }, ...FAST } }));
  });

  it("should be restarted with a GRPC liveness probe with TLS mode when endpoint returns not healthy", async () => {
    const server = await startGrpcHealthServer(await issueCertificate({ commonName: "grpc" }));
    stops.push(server.stop);
    const node = runPod({ livenessProbe: { grpc: { port: server.port, mode: "TLS" }, ...FAST } });
    await staysAlive(node);
    server.setServing(false);
    await restarted(node);
    expect(node.events).toContain(
      'Warning Unhealthy main: Liveness probe failed: service unhealthy (responded with "NOT_SERVING")',
    );
  });

  it("should be restarted with a GRPC liveness probe with TLS mode on wrong port", async () => {
    await restarted(runPod({ livenessProbe: { grpc: { port: await closedPort(), mode: "TLS" }, ...FAST } }));
  });
});

describe("h2c liveness probes (KEP-5999)", () => {
  const h2c = () => listen(createH2c((_, response) => response.end("two")));
  const probe = (port: number, protocol: string) => ({
    livenessProbe: { httpGet: { port, protocol }, ...FAST },
  });

  it("HTTP2 against an h2c server: not restarted", async () => {
    await staysAlive(runPod(probe(await h2c(), "HTTP2")));
  });

  it("HTTP1 against an HTTP/1.1 server: not restarted", async () => {
    await staysAlive(runPod(probe(await serveHttp(() => 200), "HTTP1")));
  });

  it("HTTP2 against an HTTP/1.1-only server: restarted", async () => {
    await restarted(runPod(probe(await serveHttp(() => 200), "HTTP2")));
  });

  it("HTTP2 on the wrong port: restarted", async () => {
    await restarted(runPod(probe(await closedPort(), "HTTP2")));
  });
});

describe("container_probe", () => {
  it("with readiness probe should not be ready before initial delay and never restart", async () => {
    const port = await serveHttp(() => 200);
    const readinessProbe = { httpGet: { port }, ...FAST, initialDelaySeconds: 1 };
    const node = runPod({ readinessProbe }, {}, {}, 0.5);
    await eventually("not ready", () => node.status().ready === false);
    await eventually("ready", () => node.status().ready === true);
    expect(Date.now() - Date.parse(node.status().state?.running?.startedAt ?? "")).toBeGreaterThan(1_000);
    expect(node.restarts).toEqual([]);
  });

  it("with readiness probe that fails should never be ready and never restart", async () => {
    const port = await serveHttp(() => 500);
    const node = runPod({ readinessProbe: { httpGet: { port }, ...FAST } });
    await staysAlive(node);
    expect(node.status()).toMatchObject({ ready: false, started: true });
  });

  it("should be restarted with a /healthz http liveness probe, once for each container, in the kubelet's words", async () => {
    let isHealthy = false;
    const port = await serveHttp(() => (isHealthy ? 200 : 500));
    const node = runPod({ livenessProbe: { httpGet: { port, path: "/healthz" }, ...FAST } });
    await eventually("a second restart", () => node.restarts.length >= 2);
    isHealthy = true;
    expect(node.events).toContain(
      "Warning Unhealthy main: Liveness probe failed: HTTP probe failed with statuscode: 500",
    );
    expect(node.events).toContain(
      "Normal Killing main: Container main failed liveness probe, will be restarted",
    );
    expect(node.restarts[0]?.containerId).not.toBe(node.restarts[1]?.containerId);
  });

  it("should *not* be restarted with a tcp liveness probe", async () => {
    const server = await startServer(MISBEHAVIOURS.silent);
    stops.push(() => server.close());
    await staysAlive(runPod({ livenessProbe: { tcpSocket: { port: server.port }, ...FAST } }));
  });

  it("should be restarted with an exec liveness probe, and not while the runtime is at fault", async () => {
    let faults = 0;
    let answer = (): number => {
      faults += 1;
      throw new Error("the runtime is away");
    };
    const runCommand = () => async () => ({ exitCode: answer(), output: Buffer.from("out") });
    const node = runPod(
      { livenessProbe: { exec: { command: ["cat", "/tmp/health"] }, ...FAST } },
      { runCommand },
    );
    await staysAlive(node, () => faults);
    answer = () => 1;
    await restarted(node);
    expect(node.events).toContain("Warning Unhealthy main: Liveness probe failed: out");
  });

  it("should *not* be restarted with a non-local redirect http liveness probe", async () => {
    const port = await listen(
      createServer((_, response) => response.writeHead(302, { Location: "http://0.0.0.0/" }).end("there")),
    );
    const node = runPod({ livenessProbe: { httpGet: { port }, ...FAST } });
    await staysAlive(node);
    expect(node.events).toContain(
      "Warning ProbeWarning main: Liveness probe warning: Probe terminated redirects, Response body: there",
    );
  });

  it("should override the pod's grace period with the probe's, on liveness and startup, and never below two seconds", async () => {
    const port = await closedPort();
    const graceOf = async (probe: object, spec: object, kind = "livenessProbe") => {
      const node = runPod({ [kind]: { tcpSocket: { port }, ...FAST, ...probe } }, {}, spec);
      await restarted(node);
      return node.restarts[0]?.gracePeriodSeconds;
    };
    expect(await graceOf({}, {})).toBe(30);
    expect(await graceOf({}, { terminationGracePeriodSeconds: 500 })).toBe(500);
    expect(await graceOf({ terminationGracePeriodSeconds: 5 }, { terminationGracePeriodSeconds: 500 })).toBe(
      5,
    );
    expect(await graceOf({ terminationGracePeriodSeconds: 5 }, {}, "startupProbe")).toBe(5);
    expect(await graceOf({ terminationGracePeriodSeconds: 1 }, {})).toBe(2);
  });

  it("should not be restarted by liveness while startup goes on, and be ready after it", async () => {
    let hasStarted = false;
    const startup = await serveHttp(() => (hasStarted ? 200 : 500));
    const ready = await serveHttp(() => 200);
    const node = runPod({
      startupProbe: { httpGet: { port: startup }, ...FAST, failureThreshold: 1_000 },
      livenessProbe: { tcpSocket: { port: await closedPort() }, ...FAST },
      readinessProbe: { httpGet: { port: ready }, ...FAST },
    });
    await staysAlive(node);
    expect(node.status()).toMatchObject({ started: false, ready: false });
    hasStarted = true;
    await eventually("started", () => node.status().started === true);
    await restarted(node);
    expect(node.events).toContain(
      "Normal Killing main: Container main failed liveness probe, will be restarted",
    );
  });

  it("should be restarted when its startup never ends", async () => {
    const node = runPod({ startupProbe: { tcpSocket: { port: await closedPort() }, ...FAST } });
    await restarted(node);
    expect(node.events).toContain(
      "Normal Killing main: Container main failed startup probe, will be restarted",
    );
  });
});

describe("readiness that is published", () => {
  it("conditions follow the containers; a pod of another node, and one that is gone, are not probed", async () => {
    let isReady = true;
    const port = await serveHttp(() => (isReady ? 200 : 500));
    const node = runPod({ readinessProbe: { httpGet: { port }, ...FAST } });
    const condition = (type: string) =>
      node.current().status?.conditions?.find((each) => each.type === type)?.status;
    await eventually("ready", () => condition("Ready") === "True" && condition("ContainersReady") === "True");
    isReady = false;
    await eventually("not ready", () => condition("Ready") === "False");
    expect(node.status()).toMatchObject({ ready: false, started: true });
    expect(node.status().containerID).toBeUndefined();
    const foreign = { ...node.current(), metadata: { name: "other", namespace: "default", uid: "uid-2" } };
    node.store.upsert({ ...foreign, spec: { ...foreign.spec, nodeName: "theirs" } });
    expect(node.podProbes.workerCount).toBe(1);
    node.store.remove("Pod", "default", "web");
    expect(node.podProbes.workerCount).toBe(0);
  });

  it("what a runtime reports counts, ids and the pod's IP included", async () => {
    const port = await serveHttp(() => 200);
    const node = runPod({ readinessProbe: { httpGet: { port }, ...FAST } });
    const running = { state: { running: { startedAt: agoText(60) } } };
    node.podProbes.reportStatus("uid-1", {
      phase: "Running",
      podIP: "127.0.0.1",
      containerStatuses: [{ name: "main", containerID: "containerd://abc", ...running }],
    });
    await eventually("ready", () => node.status().ready === true);
    expect(node.status().containerID).toBe("containerd://abc");
  });
});
