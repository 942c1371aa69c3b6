import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCommand } from "../../../../src/cli/command-line.ts";
import { COMMANDS } from "../../../../src/cli/command-list.ts";
import { knownNames } from "../../../../src/cli/completion/known-names.ts";
import { capturedOutput } from "../../../support/captured-output.ts";
import { changedValues } from "../../../support/changed-values.ts";
import { GatewayFiles } from "../../../support/gateway-files.ts";

// The bound under test.
const MAX_LISTED_SESSIONS = 100_000;

const POD = {
  metadata: {
    name: "web",
    namespace: "default",
    uid: "u1",
    annotations: { "kubectl.kubernetes.io/default-container": "main" },
  },
  spec: {
    containers: [{ name: "main", tty: false, ports: [{ name: "http", containerPort: 80 }] }],
    initContainers: [{ name: "init" }],
    ephemeralContainers: [{ name: "debug" }],
  },
  status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] },
};
const SESSION = {
  metadata: { name: "s", namespace: "default", creationTimestamp: "2026-01-01T00:00:00Z" },
  spec: {
    pod: "web",
    container: "main",
    ephemeral: false,
    subresource: "exec",
    node: "n",
    user: { username: "ana" },
    client: { address: "127.0.0.1" },
    plan: "translate",
  },
  status: { bytesToClient: 1, bytesToNode: 1, replica: "r", joiners: ["bob"] },
};
/** What a server answers at each path's end. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  "pods/web": POD,
  pods: { metadata: {}, items: [POD] },
  "services/web": {
    spec: {
      clusterIP: "1.2.3.4",
      selector: { a: "b" },
      ports: [{ name: "http", port: 80, targetPort: "http" }],
    },
  },
  "deployments/web": {
    spec: {
      selector: { matchLabels: { a: "b" }, matchExpressions: [{ key: "a", operator: "In", values: ["b"] }] },
    },
  },
  "replicationcontrollers/web": { spec: { selector: { a: "b" } } },
  streamingsessions: { metadata: { resourceVersion: "1", continue: "" }, items: [SESSION] },
};

/** Every command that reads objects of a server, at one whose answers have one part changed. */
describe("an answer with a changed part", () => {
  const files = new GatewayFiles({});
  const asked: string[] = [];
  let server: Server;
  let kubeconfig = "";
  let answers = ANSWERS;
  const printed = capturedOutput();
  beforeAll(async () => {
    server = createServer(({ url = "" }, response) => {
      asked.push(url);
      const [path = ""] = url.split("?");
      const name = Object.keys(answers).find((end) => path.endsWith(`/${end}`));
      response.end(name === undefined ? "" : JSON.stringify(answers[name]));
    });
    server.on("upgrade", ({ url = "" }, socket) => {
      asked.push(url);
      socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nno!\n");
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    kubeconfig = files.writeKubeconfig(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  afterAll(() => {
    server?.closeAllConnections();
    server?.close();
    files.remove();
  });

  const soon = "--pod-running-timeout=1ms";
  it.each<[readonly string[], string]>([
    [["exec", "web", soon, "--", "true"], "pods/web"],
    [["exec", "service/web", soon, "--", "true"], "services/web"],
    [["exec", "deploy/web", soon, "--", "true"], "deployments/web"],
    [["exec", "rc/web", soon, "--", "true"], "replicationcontrollers/web"],
    [["exec", "service/web", soon, "--", "true"], "pods"],
    [["attach", "web", soon], "pods/web"],
    [["cp", "web:/x", "-"], "pods/web"],
    [["port-forward", "web", "0:http", soon], "pods/web"],
    [["port-forward", "service/web", "0:80", soon], "pods"],
    [["port-forward", "service/web", "0:http", soon], "services/web"],
    [["logs", "web", soon], "pods/web"],
    [["logs", "web", "--all-containers", soon], "pods/web"],
    [["logs", "web", "-c", "other", soon], "pods/web"],
    [["logs", "-l", "a=b", "--prefix", soon], "pods"],
    [["sessions", "list", "-A", "-o", "wide"], "streamingsessions"],
    [["sessions", "list", "-o", "json"], "streamingsessions"],
    [["sessions", "end", "s", "-A"], "streamingsessions"],
  ])("gives %j a result or a plain text", async ([name = "", ...args], end) => {
    const at = args.includes("--") ? args.indexOf("--") : args.length;
    const words = [...args.slice(0, at), "--kubeconfig", kubeconfig, ...args.slice(at)];
    for (const part of changedValues(ANSWERS[end])) {
      answers = { ...ANSWERS, [end]: part };
      [printed.text, asked.length] = ["", 0];
      const code = await runCommand(name, words).catch((error: unknown) => error);
      const about = JSON.stringify(part);
      expect([0, 1], `${about}: ${code}`).toContain(code);
      if (code === 1) expect([about, printed.text]).toEqual([about, expect.stringMatching(/\S/)]);
      expect([about, printed.text + asked.join("\n")]).toEqual([
        about,
        expect.not.stringMatching(/Cannot |is not (?:iterable|a function)|undefined|\bnull\b|NaN|\[object/),
      ]);
    }
  });

  it("whose pages do not end is refused", async () => {
    const items = Array.from({ length: MAX_LISTED_SESSIONS / 4 }, () => SESSION);
    let pages = 0;
    const nextPage = () => {
      pages += 1;
      return { metadata: { continue: String(pages) }, items };
    };
    answers = Object.defineProperty({}, "streamingsessions", { get: nextPage, enumerable: true });
    expect(await runCommand("sessions", ["list", "--kubeconfig", kubeconfig])).toBe(1);
    expect([pages, printed.text]).toEqual([4, "error: the pages of the server's list do not end\n"]);
  });

  it("gives the shell names or none", async () => {
    const exec = await COMMANDS.find(({ name }) => name === "exec")?.load();
    for (const [kind, end] of [
      ["container", "pods/web"],
      ["pod", "pods"],
    ] as const) {
      for (const part of changedValues(ANSWERS[end])) {
        answers = { ...ANSWERS, [end]: part };
        const names = await knownNames(kind, exec?.command as never, [
          "web",
          "--kubeconfig",
          kubeconfig,
        ]).catch((error: unknown) => error);
        if (Array.isArray(names))
          for (const name of names) expect([part, name]).toEqual([part, expect.any(String)]);
        else expect([part, names]).not.toEqual([part, expect.any(TypeError)]);
      }
    }
  });
});
