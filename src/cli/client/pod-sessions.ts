import { shouldFallBack } from "@sluice/client/internal/connect";
import type { ForwardedStream } from "@sluice/client/internal/forwarded-stream";
import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import { portForwardPath } from "@sluice/client/internal/pod-paths";
import type { PortForwardConnection } from "@sluice/client/internal/port-forward-connection";
import { FallbackDialer, SpdyDialer, TunnelDialer } from "@sluice/client/internal/port-forward-dialers";
import { SessionError } from "@sluice/client/internal/sessions/session-error";
import { type ClientConnection, resumeOptions, webSocketsAreOn } from "./connection.ts";
import { type PodSource, podsWithin, usablePods } from "./find-pods.ts";
import type { PodObject } from "./pod-objects.ts";

/**
 * How long a local connection waits for a pod that is being replaced, or a gateway that restarts.
 * Past it the connection is reset.
 */
const RECONNECT_WINDOW_MS = 30_000;
const RETRY_DELAY_MS = 250;
/**
 * How long a server that may have stopped reading has to accept a stream. Past it the stream is
 * opened in another session.
 */
const ACCEPT_WAIT_MS = 3_000;
/** A service's pods are listed again after this time. */
const PODS_REUSE_MS = 1_000;

/**
 * The sessions of one forward: one per chosen pod, dialled on demand. Each local connection uses
 * the ready pod with the fewest connections.
 */
export class PodSessions {
  readonly #client: ClientConnection;
  readonly #source: PodSource;
  readonly #sessions = new Map<string, Promise<PortForwardConnection>>();
  readonly #retired = new Set<Promise<PortForwardConnection>>();
  readonly #load = new Map<string, number>();
  #pods: { readonly list: readonly PodObject[]; readonly untilMs: number } | undefined;
  #isClosed = false;

  constructor(client: ClientConnection, source: PodSource) {
    this.#client = client;
    this.#source = source;
  }

  /**
   * Opens a session with a ready pod, so that a wrong target fails at the start. Throws like
   * `openStream`, after `timeoutMs` if no pod is selected.
   */
  async check(ports: readonly number[], timeoutMs: number): Promise<void> {
    this.#keep(await podsWithin(this.#source, timeoutMs));
    const pod = await this.#choosePod();
    for (const port of ports) await this.#source.portOf(pod, port);
    await this.#session(pod);
  }

  /**
   * Opens a stream to a port of a ready pod. Retries for a while if the cause may pass. Throws
   * ConnectError, SessionError, or Error in kubectl's words.
   */
  async openStream(port: number): Promise<ForwardedStream> {
    const deadlineMs = performance.now() + RECONNECT_WINDOW_MS;
    for (;;) {
      try {
        return await this.#tryOpen(port);
      } catch (error) {
        if (this.#isClosed || !mayPass(error) || performance.now() > deadlineMs) throw error;
        this.#pods = undefined;
        this.#client.verbosity.note(`trying again: ${(error as Error).message}`);
        await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS));
      }
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const session of [...this.#sessions.values(), ...this.#retired]) {
      session.then(
        (connection) => connection.close(),
        () => {},
      );
    }
  }

  async #tryOpen(port: number): Promise<ForwardedStream> {
    const pod = await this.#choosePod();
    const release = this.#reserve(keyOf(pod));
    try {
      const remotePort = await this.#source.portOf(pod, port);
      const stream = await this.#openOn(pod, remotePort);
      stream.once("close", release);
      return stream;
    } catch (error) {
      release();
      throw error;
    }
  }

  /**
   * If the server may have stopped reading, waits until it accepts the stream. If it does not,
   * dials another connection; earlier streams stay on the old one.
   */
  async #openOn(pod: PodObject, port: number): Promise<ForwardedStream> {
    const session = this.#session(pod);
    const connection = await session;
    const isInDoubt = connection.isInDoubt;
    const stream = connection.openStream(port);
    if (!isInDoubt || (await isTrueWithin(stream.accepted, ACCEPT_WAIT_MS))) return stream;
    stream.on("error", () => {}).destroy();
    connection.retire();
    const key = keyOf(pod);
    if (this.#sessions.get(key) === session) {
      this.#sessions.delete(key);
      this.#retired.add(session);
      process.stderr.write("a forwarded connection holds up the others: new ones go another way\n");
    }
    return (await this.#session(pod)).openStream(port);
  }

  /** Counts from the choice on, so that simultaneous connections spread, too. */
  #reserve(key: string): () => void {
    this.#load.set(key, (this.#load.get(key) ?? 0) + 1);
    return () => {
      const left = (this.#load.get(key) ?? 0) - 1;
      if (left > 0) this.#load.set(key, left);
      else this.#load.delete(key);
    };
  }

  async #choosePod(): Promise<PodObject> {
    const { list } =
      this.#pods !== undefined && performance.now() <= this.#pods.untilMs
        ? this.#pods
        : this.#keep(await this.#source.pods());
    const load = (pod: PodObject): number => this.#load.get(keyOf(pod)) ?? 0;
    const [chosen] = [...usablePods(list, this.#source.isOnePod)].sort(
      (one, other) => load(one) - load(other),
    );
    if (chosen !== undefined) return chosen;
    const phase = list[0]?.status?.phase ?? "Unknown";
    throw new NoReadyPodError(
      list.length === 1
        ? `unable to forward port because pod is not running. Current status=${phase}`
        : "unable to forward port because no pod is ready",
    );
  }

  #keep(list: readonly PodObject[]): { readonly list: readonly PodObject[]; readonly untilMs: number } {
    this.#pods = { list, untilMs: performance.now() + PODS_REUSE_MS };
    return this.#pods;
  }

  #session(pod: PodObject): Promise<PortForwardConnection> {
    const key = keyOf(pod);
    const known = this.#sessions.get(key);
    if (known !== undefined) return known;
    const session = this.#dial(pod);
    this.#sessions.set(key, session);
    session.then(
      (connection) => connection.ended.then(() => this.#forget(key, session)),
      () => this.#forget(key, session),
    );
    return session;
  }

  #dial(pod: PodObject): Promise<PortForwardConnection> {
    const { target, verbosity, namespace } = this.#client;
    const path = portForwardPath({ namespace, pod: pod.metadata.name });
    const spdy = new SpdyDialer(target, path);
    const dialer = webSocketsAreOn("KUBECTL_PORT_FORWARD_WEBSOCKETS")
      ? new FallbackDialer(
          new TunnelDialer(target, path, { resume: resumeOptions(this.#client) }),
          spdy,
          (error) => {
            const falls = shouldFallBack(error);
            if (falls)
              verbosity.note(
                `fallback to secondary dialer from primary dialer err: ${(error as Error).message}`,
              );
            return falls;
          },
        )
      : spdy;
    return dialer.dial();
  }

  #forget(key: string, session: Promise<PortForwardConnection>): void {
    this.#client.verbosity.note(`the session with pod ${key} is over`);
    this.#retired.delete(session);
    if (this.#sessions.get(key) !== session) return;
    this.#sessions.delete(key);
    this.#pods = undefined;
  }
}

async function isTrueWithin(promise: Promise<boolean>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  try {
    return await Promise.race([promise, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}

/** No pod can serve at the moment; one may be starting. */
class NoReadyPodError extends Error {
  override readonly name = "NoReadyPodError";
}

function keyOf({ metadata }: PodObject): string {
  return `${metadata.name}/${metadata.uid ?? ""}`;
}

/**
 * Whether a retry may succeed: the pod is being replaced or the gateway restarts, and the server
 * did not refuse this user.
 */
function mayPass(error: unknown): boolean {
  if (error instanceof NoReadyPodError || error instanceof SessionError) return true;
  if (!(error instanceof ConnectError)) return false;
  const { httpStatus, leg } = error;
  if (leg === "aborted" || leg === "handshake") return false;
  return httpStatus === undefined || httpStatus === 404 || httpStatus === 429 || httpStatus >= 500;
}
