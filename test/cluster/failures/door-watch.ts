import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { WebSocket } from "ws";
import { eventually } from "../../support/eventually.ts";
import { exchange } from "../differential/raw-exchange.ts";
import type { Access } from "../doors.ts";

const PROBE_MS = 5_000;
const INTERVAL_MS = 250;

/** What a client met, each time that it changed, with the milliseconds since the failure. */
export class Timeline {
  readonly changes: { readonly atMs: number; readonly outcome: string }[] = [];

  add(atMs: number, outcome: string): void {
    if (this.changes.at(-1)?.outcome !== outcome) this.changes.push({ atMs, outcome });
  }

  get last(): string {
    return this.changes.at(-1)?.outcome ?? "";
  }

  has(outcome: string): boolean {
    return this.changes.some((change) => change.outcome === outcome);
  }

  toString(): string {
    return this.changes
      .map(({ atMs, outcome }) => (atMs <= 0 ? outcome : `from ${(atMs / 1_000).toFixed(1)} s ${outcome}`))
      .join("; ");
  }
}

/** A running session, and new requests again and again, on one way to a cluster. */
export class DoorWatch {
  /** The session that ran before. */
  readonly session = new Timeline();
  /** New sessions of a user who may. */
  readonly opened = new Timeline();
  /** GETs of the pod, with which kubectl begins, of the same user. */
  readonly pod = new Timeline();
  /** New sessions of a user who may not. */
  readonly denied = new Timeline();
  readonly #socket: WebSocket;
  #startMs = performance.now();
  /** Probes of each kind that began since the failure was over, and were answered. */
  #answered = [0, 0, 0, 0];
  #isStopped = false;
  #ended: string | undefined;
  #loops: Promise<unknown> = Promise.resolve();

  private constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  /** Throws unless everything is as it should be before the failure. */
  static async start(allowed: Access, other: Access, podName = "web"): Promise<DoorWatch> {
    const socket = await eventually(
      "a session opens",
      async () => {
        const opening = openSession(allowed, podName, ["cat"], true);
        await once(opening, "open");
        return opening;
      },
      { timeoutMs: 60_000, intervalMs: INTERVAL_MS },
    );
    const watch = new DoorWatch(socket);
    socket.on("close", (code: number) => {
      watch.#ended ??= `ended with ${code}`;
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      watch.#ended ??= `ended with ${error.code ?? error.message}`;
    });
    socket.on("message", (data: Buffer) => {
      if (data[0] === 3) watch.#ended ??= `ended: ${statusText(data.subarray(1).toString())}`;
    });
    watch.#loops = Promise.all([
      watch.#repeat(0, watch.session, () => watch.#ping()),
      watch.#repeat(1, watch.opened, () => newSession(allowed, podName)),
      watch.#repeat(2, watch.denied, () => newSession(other, podName)),
      watch.#repeat(3, watch.pod, () => getPod(allowed, podName)),
    ]);
    await eventually(
      () => `all works: ${watch.states().join(", ")}`,
      () => watch.isWell,
      { timeoutMs: 30_000 },
    );
    return watch;
  }

  /** From now on times count. */
  mark(): void {
    this.#startMs = performance.now();
  }

  /** The failure has happened: from now on what is well is over. */
  markOver(): void {
    this.#answered = [0, 0, 0, 0];
  }

  /** Every kind of probe began and ended since `markOver`. */
  get isFresh(): boolean {
    return this.#answered.every((count) => count > 0);
  }

  states(): string[] {
    return [this.session.last, this.opened.last, this.pod.last, this.denied.last];
  }

  /** Of a row of docs/evidence/cluster-failures.md. */
  get cells(): string[] {
    return [this.session, this.opened, this.pod, this.denied].map(String);
  }

  /** A session that ended does not come back; everything else can. */
  get isWell(): boolean {
    return this.opened.last === "works" && this.pod.last === "200" && this.denied.last === "403";
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#loops;
    this.#socket.terminate();
  }

  async #repeat(index: number, timeline: Timeline, probe: () => Promise<string>): Promise<void> {
    while (!this.#isStopped) {
      const atMs = performance.now() - this.#startMs;
      const answered = this.#answered;
      timeline.add(timeline.changes.length === 0 ? 0 : atMs, await probe());
      answered[index] = (answered[index] ?? 0) + 1;
      await delay(INTERVAL_MS);
    }
  }

  async #ping(): Promise<string> {
    if (this.#ended !== undefined) return this.#ended;
    const signal = AbortSignal.timeout(PROBE_MS);
    try {
      this.#socket.send(Buffer.from("\0ping\n"));
      await once(this.#socket, "message", { signal });
      return this.#ended ?? "echoes";
    } catch {
      return this.#ended ?? "is silent";
    }
  }
}

function openSession(access: Access, pod: string, command: readonly string[], hasStdin: boolean): WebSocket {
  const query = new URLSearchParams([
    ...command.map((word): [string, string] => ["command", word]),
    ["container", "main"],
    ["stdin", `${hasStdin}`],
    ["stdout", "true"],
  ]);
  const target = `${access.url.replace(/^http/, "ws")}/api/v1/namespaces/default/pods/${pod}/exec?${query}`;
  const { ca, cert, key, token } = access;
  return new WebSocket(target, ["v5.channel.k8s.io"], {
    ca,
    ...(cert !== undefined && { cert, key }),
    ...(token !== undefined && { headers: { Authorization: `Bearer ${token}` } }),
    perMessageDeflate: false,
    handshakeTimeout: PROBE_MS,
  });
}

/** `works`, a status code of a refusal, or what became of the connection. */
export function newSession(access: Access, pod = "web"): Promise<string> {
  return new Promise((resolve) => {
    const socket = openSession(access, pod, ["true"], false);
    const timer = setTimeout(() => settle(`no end in ${PROBE_MS / 1_000} s`), 2 * PROBE_MS);
    const settle = (outcome: string): void => {
      clearTimeout(timer);
      resolve(outcome);
      socket.terminate();
    };
    socket.on("message", (data: Buffer) => {
      if (data[0] !== 3) return;
      const text = statusText(data.subarray(1).toString());
      settle(text === "Success" ? "works" : text);
    });
    socket.on("unexpected-response", (_, response) => settle(`${response.statusCode}`));
    socket.on("close", (code: number) => settle(`closed with ${code}`));
    socket.on("error", (error: NodeJS.ErrnoException) => settle(wordOf(error)));
  });
}

async function getPod(access: Access, pod: string): Promise<string> {
  const path = `/api/v1/namespaces/default/pods/${pod}`;
  const { status, body } = await exchange(access, { method: "GET", path });
  return status === 0 ? (/\bE[A-Z]{4,}\b/.exec(body)?.[0] ?? body) : `${status}`;
}

function wordOf({ code, message }: NodeJS.ErrnoException): string {
  return (
    code ?? (message.includes("handshake has timed out") ? `no answer in ${PROBE_MS / 1_000} s` : message)
  );
}

/** `Success`, or the exit code, or the first words of the message. */
function statusText(body: string): string {
  const status = JSON.parse(body);
  if (status.status === "Success") return "Success";
  const [cause] = status.details?.causes ?? [];
  return cause?.reason === "ExitCode"
    ? `exit code ${cause.message}`
    : `"${String(status.message).slice(0, 60)}"`;
}
