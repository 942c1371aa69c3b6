import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { KubeConfig } from "@kubernetes/client-node";
import { freePorts } from "./http/loopback.ts";

const {
  SLUICE_PARTS_DIR: parts = path.join(homedir(), ".cache/sluice/real-parts"),
  SLUICE_PYTHON = "python3",
} = process.env;
const repository = path.join(import.meta.dirname, "../..");
const programs = path.join(repository, "test/real");

/** What a client prints of a pod if all works: its commands' exit codes and bytes, and its forwards. */
const COMMANDS = {
  exit_code: ["out\n", "err\n", 3],
  download: [5 * 1024 * 1024, "1000000000\n", 0],
};
const ALL = { ...COMMANDS, upload: true, forwards: 20 };

/** A Kubernetes client that others wrote, in a program of test/real that tries its features. */
export interface OtherClient {
  readonly name: string;
  /** Undefined if the client is not installed. */
  readonly version: string | undefined;
  /** How to install it. */
  readonly needs: string;
  /** What the program reports of a pod whose port 7 echoes, and whose container `main` has a shell. */
  readonly checks: object;
  /** The program's reports of pods in the namespace `default`. */
  run(kubeconfig: string, pods: readonly string[]): Promise<unknown[]>;
}

async function reports(command: string, args: readonly string[], env = process.env): Promise<unknown[]> {
  const { stdout } = await promisify(execFile)(command, args, { timeout: 240_000, env });
  const lines = stdout.trimEnd().split("\n");
  if (!lines.every((line) => line.startsWith("{"))) throw new Error(`no reports: ${stdout.slice(0, 1_000)}`);
  return lines.map((line) => JSON.parse(line));
}

/** For programs that try one pod. */
async function reportsOfEach(
  pods: readonly string[],
  reportsOf: (pod: string) => Promise<unknown[]>,
): Promise<unknown[]> {
  return (await Promise.all(pods.map(reportsOf))).flat();
}

/** `SLUICE_PYTHON`: an interpreter that can import the clients, such as one of a virtual environment. */
function pythonClient(name: string, script: string, checks: object = ALL): OtherClient {
  const program = `import ${name}; from importlib.metadata import version; print(version("${name}"))`;
  const { status, stdout } = spawnSync(SLUICE_PYTHON, ["-c", program], { encoding: "utf8" });
  return {
    name,
    version: status === 0 ? stdout.trim() : undefined,
    needs: `pip install ${name} in $SLUICE_PYTHON`,
    checks,
    run: (kubeconfig, pods) =>
      reportsOfEach(pods, async (pod) => {
        const file = path.join(programs, "python", script);
        // kr8s' own choice is a port that another connection may get before it listens.
        const own = script === "other_clients.py" ? [name] : [];
        const ports = own.length === 0 ? [] : await freePorts(1);
        const args = [...own, kubeconfig, pod, ...ports.map(String)];
        return reports(SLUICE_PYTHON, ["-W", "ignore", file, ...args]);
      }),
  };
}

const jars = path.join(parts, "java-clients");
/** The first that runs a source file with the language of the program is 17. */
const hasJava = spawnSync("java", ["--source", "17", "--version"]).status === 0;
const jarNames = hasJava && existsSync(jars) ? readdirSync(jars) : [];

/** `word`: the program's name of the client. */
function javaClient(name: string, word: string, jar: string): OtherClient {
  const pattern = new RegExp(String.raw`^${jar}-(\d[\d.]*)\.jar$`);
  return {
    name,
    version: jarNames.flatMap((file) => pattern.exec(file)?.[1] ?? [])[0],
    needs: "java 17, and mvn dependency:copy-dependencies in test/real/java",
    checks: ALL,
    run: (kubeconfig, pods) => {
      const program = path.join(programs, "java/JavaClients.java");
      return reports("java", ["-cp", `${jars}/*`, program, word, kubeconfig, ...pods]);
    },
  };
}

function nodeClient(release: string, folder: string): OtherClient {
  const package_ = path.join(folder, "node_modules/@kubernetes/client-node");
  const manifest = path.join(package_, "package.json");
  return {
    name: "@kubernetes/client-node",
    version: existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")).version : undefined,
    needs: `npm install --prefix ${folder} @kubernetes/client-node@${release}`,
    checks: ALL,
    run: (kubeconfig, pods) => {
      const program = path.join(programs, "javascript/client-node.mjs");
      return reportsOfEach(pods, (pod) => reports(process.execPath, [program, package_, kubeconfig, pod]));
    },
  };
}

function rustClient(): OtherClient {
  const program = path.join(parts, "kube-rs/debug/kube-rs-client");
  return {
    name: "kube-rs",
    version: existsSync(program) ? "by rustls" : undefined,
    needs: "cargo build in test/real/rust, with that folder's CARGO_TARGET_DIR",
    checks: ALL,
    run: (kubeconfig, pods) => reports(program, [kubeconfig, ...pods]),
  };
}

/** A load generator, which has WebSockets and no notion of Kubernetes: its script speaks v5 itself. */
function k6Client(): OtherClient {
  const program = path.join(parts, "go/k6");
  const version = /k6 v(\S+)/.exec(spawnSync(program, ["version"], { encoding: "utf8" }).stdout ?? "")?.[1];
  return {
    name: "k6",
    version,
    needs: "go install go.k6.io/k6@v1.8.1",
    checks: ALL,
    run: async (kubeconfig, pods) => {
      const config = new KubeConfig();
      config.loadFromFile(kubeconfig);
      const { server, caFile, caData = "" } = config.getCurrentCluster() ?? {};
      const folder = mkdtempSync(path.join(tmpdir(), "sluice-k6-"));
      const authority = caFile ?? path.join(folder, "ca.crt");
      if (caFile === undefined) writeFileSync(authority, Buffer.from(caData, "base64"));
      const own = { SERVER: server, TOKEN: config.getCurrentUser()?.token, PODS: pods.join() };
      const env = { ...process.env, ...own, SSL_CERT_FILE: authority, K6_NO_USAGE_REPORT: "true" };
      const output = ["--summary-mode=disabled", "--log-output=stdout", "--log-format=raw"];
      const args = ["run", "--quiet", "--address=", ...output, path.join(programs, "k6/exec.js")];
      return reports(program, args, env).finally(() => rmSync(folder, { recursive: true }));
    },
  };
}

/** kr8s sends no input but over v5, which it does not offer, and lightkube forwards no ports. */
export const OTHER_CLIENTS: readonly OtherClient[] = [
  pythonClient("kubernetes", "kubernetes_client.py"),
  pythonClient("kubernetes_asyncio", "other_clients.py"),
  pythonClient("lightkube", "other_clients.py", { ...COMMANDS, upload: true }),
  pythonClient("kr8s", "other_clients.py", { ...COMMANDS, forwards: 20 }),
  javaClient("fabric8 by Vert.x", "vertx", "kubernetes-httpclient-vertx"),
  javaClient("fabric8 by OkHttp", "okhttp", "kubernetes-httpclient-okhttp"),
  javaClient("fabric8 by the JDK's client", "jdk", "kubernetes-httpclient-jdk"),
  javaClient("the official client-java", "client-java", "client-java"),
  rustClient(),
  nodeClient("0.22", path.join(parts, "client-node-0.22")),
  nodeClient("1.x", repository),
  k6Client(),
];

/** For a test's title. */
export const titleOf = ({ name, version, needs }: OtherClient): string =>
  `${name} ${version ?? `(needs ${needs})`}`;
