import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { goPeer } from "./go-peers.ts";

export interface ProberQuestion {
  readonly Kind: "http" | "tcp" | "grpc";
  readonly Host: string;
  readonly Port: number;
  readonly Path?: string;
  readonly Scheme?: "HTTP" | "HTTPS";
  readonly Protocol?: "HTTP2" | undefined;
  readonly Mode?: "TLS" | undefined;
  readonly Service?: string;
  readonly Headers?: readonly { name: string; value: string }[];
  readonly TimeoutMs: number;
}

export interface ProberAnswer {
  readonly result: string;
  readonly output: string;
  readonly error?: string;
  readonly ms: number;
}

/** The Go programs beside the real tests. They need Go. */
export class GoProbePrograms {
  readonly #children: ChildProcess[] = [];

  /** Addresses, keyed by the server's name; see servers/main.go. */
  async startServers(): Promise<Readonly<Record<string, { readonly port: number }>>> {
    const child = spawn(goPeer("probe-servers", "servers"), { stdio: ["pipe", "pipe", "inherit"] });
    this.#children.push(child);
    const [line] = (await once(createInterface(child.stdout), "line")) as [string];
    const addresses = JSON.parse(line) as Record<string, string>;
    return Object.fromEntries(
      Object.entries(addresses).map(([name, address]) => [name, { port: Number(address.split(":")[1]) }]),
    );
  }

  /** The verdicts of Kubernetes' own probers, on all questions at once. */
  async ask(questions: readonly ProberQuestion[]): Promise<readonly ProberAnswer[]> {
    const child = spawn(goPeer("probe-servers", "kubelet-probe"), { stdio: ["pipe", "pipe", "ignore"] });
    this.#children.push(child);
    const answers: ProberAnswer[] = [];
    createInterface(child.stdout).on("line", (line) => {
      const answer = JSON.parse(line) as ProberAnswer & { id: number };
      answers[answer.id] = answer;
    });
    questions.forEach((question, Id) => {
      child.stdin.write(`${JSON.stringify({ ...question, Id })}\n`);
    });
    child.stdin.end();
    await once(child, "close");
    return answers;
  }

  stop(): void {
    for (const child of this.#children) child.kill("SIGKILL");
  }
}
