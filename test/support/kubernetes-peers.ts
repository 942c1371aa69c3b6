import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { eventually } from "./eventually.ts";
import { goPeer } from "./go-peers.ts";
import { freePorts } from "./http/loopback.ts";

/** Kubernetes' own streaming server, and its own handlers in front of it. They need Go. */
export class KubernetesPeers {
  readonly #children: ChildProcess[] = [];
  /** The port of a kubelet, which speaks only SPDY. */
  serverPort = 0;
  /** The port of an API server's handlers: WebSocket v5 and tunnels. */
  handlersPort = 0;

  async start(): Promise<void> {
    [this.serverPort = 0] = await freePorts(1);
    this.#spawn("kube-upstream", "-listen", `127.0.0.1:${this.serverPort}`);
    await answers(this.serverPort);
    await this.startHandlers(`http://127.0.0.1:${this.serverPort}`);
  }

  /** Starts only the handlers, in front of another node over plain HTTP. */
  async startHandlers(upstream: string): Promise<void> {
    [this.handlersPort = 0] = await freePorts(1);
    this.#spawn("kube-proxy-go", "-listen", `127.0.0.1:${this.handlersPort}`, "-upstream", upstream);
    await answers(this.handlersPort);
  }

  async stop(): Promise<void> {
    for (const child of this.#children) {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "close");
    }
  }

  #spawn(name: string, ...args: string[]): void {
    this.#children.push(spawn(goPeer("kubernetes", name), args, { stdio: "ignore" }));
  }
}

async function answers(port: number): Promise<void> {
  await eventually(
    `port ${port} answers`,
    async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).status > 0,
  );
}
