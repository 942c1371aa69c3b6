// The processes of a run: one upstream for each encryption, contenders that are started at their
// first use, and the load client.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { contenders, nodeOf } from "./contenders.mjs";
import { buildKubernetesPeers, hasGo, nodePeers } from "./peer-programs.mjs";
import { lineOf, processTree, startProgram, stop } from "./processes.mjs";

const IS_TLS = { plain: false, TLS: true };

export class Lab {
  #folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-"));
  #peers;
  #tls;
  #upstreams = new Map();
  #handlers = new Map();
  #started = new Map();
  #otherNode;
  #count = 0;

  /** `otherNode` is the path of a second Node, for contenders named `NAME@node`. */
  static async open(otherNode, { isWithoutGo = !hasGo() } = {}) {
    const lab = new Lab();
    process.on("exit", () => rmSync(lab.#folder, { recursive: true, force: true }));
    lab.#otherNode = otherNode;
    lab.#peers = isWithoutGo ? nodePeers() : buildKubernetesPeers(lab.#folder);
    const { certPem, keyPem } = await createSelfSignedCertificate(["127.0.0.1"], "sluice-bench");
    const [certFile, keyFile] = [path.join(lab.#folder, "cert.pem"), path.join(lab.#folder, "key.pem")];
    writeFileSync(certFile, certPem);
    writeFileSync(keyFile, keyPem);
    lab.#tls = { certPem, keyPem, certFile, keyFile };
    return lab;
  }

  /** The project that the client and the node come from. */
  get peers() {
    return this.#peers.name;
  }

  /** Runs the load client through a contender. Rejects if the client reports an error. */
  async load(name, { plan, encryption }, args, contender) {
    const { url, via, pids } = await this.#target(name, plan, encryption, contender);
    const [program, ...first] = this.#peers.load;
    const upstreamPids = [this.#upstreams, this.#handlers].flatMap((some) => some.get(encryption)?.pid ?? []);
    const accounted = ["-proxy-pid", pids(), "-upstream-pid", upstreamPids.join(",")];
    const all = [...first, "-url", url, "-via", via, "-token", "bench-token", ...accounted, ...args];
    const child = startProgram(program, all);
    child.stdin.end();
    return { child, result: resultOf(child, `${name}: load client ${args.join(" ")}`) };
  }

  /** Starts a contender for one measurement only, so that earlier work does not affect it. */
  async fresh(name, encryption) {
    return { ...(await this.#start(name, encryption)), isFresh: true };
  }

  async stop(contender) {
    if (contender.child !== undefined) await stop(contender.child);
  }

  /**
   * Ends the contenders of a workload, so that idle ones do not share the cores with the next
   * workload.
   */
  async clear() {
    await Promise.all(Array.from(this.#started.values(), (contender) => this.stop(contender)));
    this.#started.clear();
  }

  async #target(name, plan, encryption, given) {
    const key = `${name} ${encryption} ${nodeOf(plan)}`;
    const contender = given ?? this.#started.get(key) ?? (await this.#start(name, encryption, nodeOf(plan)));
    if (given === undefined) this.#started.set(key, contender);
    const scheme = IS_TLS[encryption] ? "https" : "http";
    const pids = () => (contender.child === undefined ? "" : processTree(contender.child.pid).join(","));
    return {
      url: `${scheme}://127.0.0.1:${contender.port}${contender.path ?? ""}`,
      via: contenders[baseOf(name)].via[plan],
      pids,
    };
  }

  async #start(name, encryption, node = "SPDY") {
    const webSocketPort = node === "SPDY" ? undefined : await this.#webSocketNode(encryption);
    const upstreamPort = node === "WebSocket" ? webSocketPort : await this.#upstream(encryption);
    const { start } = contenders[baseOf(name)];
    if (start === undefined) return { port: upstreamPort };
    this.#count += 1;
    const folder = path.join(this.#folder, String(this.#count));
    mkdirSync(folder);
    return start({
      folder,
      upstreamPort,
      webSocketPort,
      node: name.endsWith("@node") ? this.#otherNode : process.execPath,
      tls: IS_TLS[encryption] ? this.#tls : undefined,
      kubernetesPeers: this.#peers,
    });
  }

  /**
   * Starts Kubernetes' handlers in front of the upstream. Together they are a node that accepts
   * WebSocket v5 and the tunnel.
   */
  async #webSocketNode(encryption) {
    const known = this.#handlers.get(encryption);
    if (known !== undefined) return known.port;
    const [program, ...args] = this.#peers.proxy;
    const scheme = IS_TLS[encryption] ? "https" : "http";
    const upstream = `${scheme}://127.0.0.1:${await this.#upstream(encryption)}`;
    const tls = IS_TLS[encryption] ? ["-tls"] : [];
    const child = startProgram(program, [...args, "-listen", "127.0.0.1:0", "-upstream", upstream, ...tls]);
    const port = Number(await lineOf(child, /listening \S+:(\d+)/));
    this.#handlers.set(encryption, { port, pid: child.pid });
    return port;
  }

  async #upstream(encryption) {
    const known = this.#upstreams.get(encryption);
    if (known !== undefined) return known.port;
    const [program, ...args] = this.#peers.upstream(IS_TLS[encryption] ? this.#tls : undefined);
    const child = startProgram(program, args);
    const port = Number(await lineOf(child, /listening \S+:(\d+)/));
    this.#upstreams.set(encryption, { port, pid: child.pid });
    return port;
  }
}

export const baseOf = (name) => name.replace(/@node$/, "");

async function resultOf(child, what) {
  let text = "";
  child.stdout.on("data", (chunk) => {
    text += chunk;
  });
  await new Promise((resolve) => child.once("close", resolve));
  if (child.killed) return undefined;
  const last = JSON.parse(text.trim().split("\n").at(-1) || '{"error":"it said nothing"}');
  if (last.error !== undefined) throw new Error(`${what}: ${last.error}`);
  return last;
}
