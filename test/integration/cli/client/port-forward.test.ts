import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../support/eventually.ts";
import { collect } from "../../../support/kubectl.ts";
import { ScriptedKubelet } from "../../../support/scripted-kubelet.ts";
import { Sluice } from "../../../support/sluice.ts";
import { StreamingApi } from "../../../support/streaming-api.ts";

let api: StreamingApi;
let sluice: Sluice;
const children: ChildProcessWithoutNullStreams[] = [];
const closing: (() => Promise<void>)[] = [];

beforeEach(async () => {
  api = new StreamingApi();
  await api.start();
  sluice = new Sluice({ KUBECONFIG: api.kubeconfig });
  const ports = [{ name: "front", port: 80, targetPort: "http" }];
  const service = { spec: { clusterIP: "10.0.0.1", selector: { app: "web" }, ports } };
  api.objects.set("/api/v1/namespaces/default/services/web", service);
  const selector = {
    matchLabels: { app: "web" },
    matchExpressions: [{ key: "tier", operator: "NotIn", values: ["a", "b"] }],
  };
  api.objects.set("/apis/apps/v1/namespaces/default/deployments/web", { spec: { selector } });
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "close");
  }
  await api.remove();
  for (const close of closing.splice(0)) await close();
});

/** A pod that says its name, the port and what it hears; it refuses WebSockets, as old servers do. */
async function startPod(name: string) {
  const kubelet = new ScriptedKubelet({
    protocol: "portforward.k8s.io",
    refuse: ({ method }) => (method === "GET" ? "HTTP/1.1 403 Forbidden\r\n\r\n" : undefined),
    onData: (stream, part, fin, session) => {
      const data = session.streams.get(stream);
      if (!stream.startsWith("data") || data === undefined) return;
      if (part.byteLength > 0)
        data.write(Buffer.from(`${name}:${data.headers.get("port")}:${Buffer.from(part)}`));
      if (fin) data.finish();
    },
  });
  const port = await kubelet.listen();
  closing.push(() => kubelet.close());
  return { name, port, kubelet };
}

async function startForward(...args: string[]) {
  const child = sluice.start(["port-forward", "--address", "127.0.0.1", ...args]);
  children.push(child);
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  const lines = (): string[] =>
    stdout()
      .split("\n")
      .filter((line) => line.startsWith("Forwarding"));
  const wanted = args.filter((argument) => /^\d*:\w+$/.test(argument)).length;
  await eventually(
    () => `listening: ${stdout()}${stderr()}`,
    () => lines().length === wanted,
  );
  const ports = lines().map((line) => Number(/:(\d+) ->/.exec(line)?.[1]));
  return { child, ports, stdout, stderr };
}

function ask(port = 0, what = "hi"): Promise<string> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  socket.end(what);
  return text(socket).catch((error: Error) => error.message);
}

describe("sluice port-forward", () => {
  it("forwards several ports of a pod, after the fallback to SPDY, until SIGINT", async () => {
    api.setPods([await startPod("web-1")]);
    const { child, ports, stdout } = await startForward("web-1", ":80", ":7");
    expect(await Promise.all(ports.map((port) => ask(port)))).toEqual(["web-1:80:hi", "web-1:7:hi"]);
    expect(stdout()).toContain(`Handling connection for ${ports[0]}\n`);
    child.kill("SIGINT");
    const [exitCode] = await once(child, "close");
    expect(exitCode).toBe(0);
  });

  it("spreads a service's connections over its ready pods, by the name of its target port", async () => {
    const pods = [await startPod("web-1"), await startPod("web-2"), await startPod("web-3")];
    api.setPods(pods.map((pod, index) => ({ ...pod, isReady: index !== 1 })));
    const { ports } = await startForward("svc/web", ":80");
    const sockets = [0, 1, 2, 3].map(() => connect({ host: "127.0.0.1", port: ports[0] ?? 0 }));
    const answers: string[] = [];
    for (const socket of sockets) {
      socket.write("x");
      answers.push(String((await once(socket, "data"))[0]));
    }
    for (const socket of sockets) socket.destroy();
    expect(answers.sort()).toEqual(["web-1:8080:x", "web-1:8080:x", "web-3:8080:x", "web-3:8080:x"]);
  });

  it.each([
    ["web-1"],
    ["svc/web"],
    ["deploy/web"],
  ])("takes a named port of %s, as kubectl does", async (resource) => {
    api.setPods([await startPod("web-1")]);
    const { ports } = await startForward(resource, resource === "svc/web" ? ":front" : ":http");
    expect(await ask(ports[0])).toBe("web-1:8080:hi");
  });

  it("survives the replacement of a deployment's pod, and a restart of the gateway, while connections come", async () => {
    const old = await startPod("web-1");
    api.setPods([old]);
    const { ports, child, stderr } = await startForward("deployment/web", ":8080", "-v", "4");
    expect(await ask(ports[0])).toBe("web-1:8080:hi");
    expect(decodeURIComponent(api.requests.join())).toContain("labelSelector=app=web,tier+notin+(a,b)");

    api.setPods([]);
    await old.kubelet.close();
    await eventually("the old session is over", () => stderr().includes("is over"));
    const waiting = ask(ports[0]);
    api.setPods([await startPod("web-2")]);
    expect(await waiting).toBe("web-2:8080:hi");

    await api.stop();
    await eventually("the new one is, too", () => stderr().split("is over").length === 3);
    const whileDown = ask(ports[0]);
    await api.start();
    expect(await whileDown).toBe("web-2:8080:hi");
    expect(child.exitCode).toBeNull();
  });

  it("serves the next connection by another way when a server reads no more, and says so", async () => {
    // Go's SPDY stops reading everything once the queue of one stream is full; what was open stays as it is.
    const kubelet = new ScriptedKubelet({
      protocol: "portforward.k8s.io",
      refuse: ({ method }) => (method === "GET" ? "HTTP/1.1 403 Forbidden\r\n\r\n" : undefined),
      onData: (stream, part, fin, session) => {
        if (!stream.startsWith("data")) return;
        const said = Buffer.from(part).toString();
        if (said === "stop reading") session.socket.pause();
        else if (said !== "")
          session.streams
            .get(stream)
            ?.write(Buffer.from(`session ${kubelet.sessions.indexOf(session)}: ${said}`));
        if (fin) session.streams.get(stream)?.finish();
      },
    });
    const port = await kubelet.listen();
    closing.push(() => kubelet.close());
    api.setPods([{ name: "web-1", port }]);
    const { ports, stderr } = await startForward("web-1", ":80");
    const neighbour = connect({ host: "127.0.0.1", port: ports[0] ?? 0 });
    neighbour.write("hi");
    expect(String((await once(neighbour, "data"))[0])).toBe("session 0: hi");
    const stopping = connect({ host: "127.0.0.1", port: ports[0] ?? 0 });
    stopping.write("stop reading");
    await eventually("the server reads no more", () => kubelet.sessions[0]?.socket.isPaused());
    // Two at once: one further session for both.
    expect(await Promise.all([ask(ports[0]), ask(ports[0])])).toEqual(["session 1: hi", "session 1: hi"]);
    expect(stderr()).toBe("a forwarded connection holds up the others: new ones go another way\n");
    expect([neighbour.destroyed, stopping.destroyed, kubelet.sessions.length]).toEqual([false, false, 2]);
    kubelet.sessions[0]?.socket.resume();
    neighbour.write("again");
    expect(String((await once(neighbour, "data"))[0])).toBe("session 0: again");
    for (const socket of [neighbour, stopping]) socket.destroy();
    await eventually(
      "the old session ends with its last connection",
      () => kubelet.sessions[0]?.socket.readableEnded,
    );
  });

  it.each([
    [
      ["web-1"],
      2,
      "sluice port-forward: TYPE/NAME and list of ports are required for port-forward\nSee 'sluice port-forward --help' for usage.\n",
    ],
    [
      ["web-1", "x:80"],
      2,
      `sluice port-forward: local port 'x' must be a number from 0 to 65535\nSee 'sluice port-forward --help' for usage.\n`,
    ],
    [["gone", "80"], 1, "Error from server (NotFound): pods gone not found\n"],
    [["svc/web", "81"], 1, "error: Service web does not have a service port 81\n"],
    [
      ["web-down", ":80"],
      1,
      "error: unable to forward port because pod is not running. Current status=Pending\n",
    ],
    [["web-1", "x"], 1, "error: Pod 'web-1' does not have a named port 'x'\n"],
    [["svc/web", ":x"], 1, "error: Service 'web' does not have a named port 'x'\n"],
    [["gone", "http"], 1, "Error from server (NotFound): pods gone not found\n"],
    [["svc/web", ":80", "--address="], 1, "error: you must specify at least 1 address\n"],
    [["svc/web", ":80", "--address", "nowhere"], 1, "error: nowhere is not a valid IP\n"],
  ])("%j: exit code %i, %j", async (args, exitCode, stderr) => {
    api.setPods([await startPod("web-1"), { name: "web-down", port: 1, phase: "Pending" }]);
    const result = await sluice.run(["port-forward", ...args]);
    expect(result).toMatchObject({ exitCode, stderr });
  });
});
