import { createHash } from "node:crypto";
import type { NamedText } from "@sluice/client/internal/config/named-file-text";
import type { SessionLists } from "../../admin/admin-server.ts";
import type { ListenAddress } from "../../net/listen.ts";
import type { ProbeUpdate } from "../../probes/probe-update.ts";
import { END_HOP_MS, type EndRequest, type EndResult, MAX_END_MS } from "../../sessions/session-actions.ts";
import type { ListedSession } from "../../sessions/session-info.ts";
import type { JoinAnswer, JoinRequest } from "../../sessions/session-joins.ts";
import { OUTPUT_WAIT_MS, type OutputAnswer, type OutputRead } from "../../sessions/session-outputs.ts";
import type { SessionFacts } from "../../sessions/sessions.ts";

/** A listener's name in the configuration, and its address. */
interface ListenCall {
  readonly name: string;
  readonly address: string;
  readonly port: number;
}

/** A worker's report, sent a few milliseconds after something in it changed. */
interface WorkerReport {
  /** Ids of connections that have closed. */
  readonly closed: readonly number[];
  readonly sessions: number;
}

/** The result of acquiring a session among all workers: a place, or the refusal. */
export type PlaceAnswer = { readonly place: number } | { readonly refusal: string; readonly code: 429 | 503 };

/** Calls that a worker makes to the primary. */
export type PrimaryCalls = {
  readonly listen: { readonly body: ListenCall; readonly answer: ListenAddress };
  /** The worker has received the connection with this id. Sent before the worker reads from it. */
  readonly received: { readonly body: number; readonly answer: undefined };
  readonly report: { readonly body: WorkerReport; readonly answer: undefined };
  readonly takePlace: {
    readonly body: { readonly user: string; readonly namespace: string };
    readonly answer: PlaceAnswer;
  };
  readonly giveBack: { readonly body: number; readonly answer: undefined };
  readonly sessionBegan: { readonly body: ListedSession; readonly answer: undefined };
  /** The session's id. */
  readonly sessionOver: { readonly body: string; readonly answer: undefined };
  /** Whether the primary needs the files with this digest, which the worker found valid. */
  readonly wantsFiles: {
    readonly body: { readonly kind: KeptKind; readonly digest: string };
    readonly answer: boolean;
  };
  readonly keepFiles: {
    readonly body: { readonly kind: KeptKind; readonly files: readonly NamedText[] };
    readonly answer: undefined;
  };
  /** The last valid files; undefined: there are none yet. */
  readonly recallFiles: { readonly body: KeptKind; readonly answer: readonly NamedText[] | undefined };
  /** Audit events, one JSON line each. */
  readonly audit: { readonly body: readonly string[]; readonly answer: undefined };
  /** The sessions of all workers. */
  readonly replicaSessions: { readonly body: undefined; readonly answer: SessionLists };
  /** Ends a session of any worker. */
  readonly endSession: { readonly body: EndRequest; readonly answer: EndResult };
  /** What the worker that runs the session knows about it. */
  readonly sessionFacts: { readonly body: string; readonly answer: SessionFacts | undefined };
  /** Output of a session of any worker. */
  readonly sessionOutput: { readonly body: OutputRead; readonly answer: OutputAnswer };
  readonly typeInSession: { readonly body: JoinRequest; readonly answer: JoinAnswer };
  /** Sent by the worker that probes for all. */
  readonly found: { readonly body: readonly ProbeUpdate[]; readonly answer: undefined };
};

/**
 * How a worker must serve. All workers get the same text, even if the file has changed meanwhile.
 */
export interface WorkerStart {
  readonly configurationText: string;
  readonly configurationFile: string;
  readonly flags: Readonly<Record<string, string>>;
  /** Base64 keys for TLS session tickets, shared so that any worker can resume a TLS session. */
  readonly ticketKeys: string;
  /** This replica's id among the gateway's replicas. */
  readonly replicaId: string;
  /** True for exactly one worker. */
  readonly isFirst: boolean;
  /** The number of workers, including this one. */
  readonly workers: number;
  /** The Unix socket for the worker's admin listener, in the gateway's own folder. */
  readonly adminSocket: string;
}

/** Calls that the primary makes to a worker. `start` rejects with the problem's text. */
export type WorkerCalls = {
  readonly start: { readonly body: WorkerStart; readonly answer: undefined };
  readonly connection: {
    readonly body: { readonly name: string; readonly id: number };
    readonly answer: undefined;
  };
  /** A new configuration text, which the primary has validated. */
  readonly reload: { readonly body: string; readonly answer: undefined };
  /** Results of another worker's probes. */
  readonly learn: { readonly body: readonly ProbeUpdate[]; readonly answer: undefined };
  /**
   * Makes this worker probe for all. `isSuccessor`: another worker did before. Answered once its
   * probes have started.
   */
  readonly probe: { readonly body: { readonly isSuccessor: boolean }; readonly answer: undefined };
  /** Any process answers this at once while its event loop runs. */
  readonly beat: { readonly body: undefined; readonly answer: undefined };
  readonly metrics: { readonly body: undefined; readonly answer: readonly unknown[] };
  readonly sessions: { readonly body: undefined; readonly answer: readonly unknown[] };
  /** The given sessions of this replica, followed by the other replicas' sessions. */
  readonly allSessions: { readonly body: SessionLists; readonly answer: SessionLists };
  /** The facts of a session of this worker. */
  readonly sessionFacts: { readonly body: string; readonly answer: SessionFacts | undefined };
  /** Output of a session of this worker. */
  readonly sessionOutput: { readonly body: OutputRead; readonly answer: OutputAnswer };
  readonly typeInSession: { readonly body: JoinRequest; readonly answer: JoinAnswer };
  /** Ends a session of this worker. */
  readonly endSession: { readonly body: EndRequest; readonly answer: EndResult };
  /** Ends a session of another replica. */
  readonly endElsewhere: { readonly body: EndRequest; readonly answer: EndResult };
  /** What the worker knows about all nodes, or about the named one. */
  readonly nodes: { readonly body: string | undefined; readonly answer: readonly unknown[] };
  /** The state of each probe that this worker runs; empty if another worker probes for all. */
  readonly probes: { readonly body: undefined; readonly answer: readonly object[] };
  /** Keep serving, and ask clients to leave; true: another program accepts resumptions. */
  readonly lameDuck: { readonly body: boolean; readonly answer: undefined };
  /** Answered once everything has stopped. */
  readonly shutDown: { readonly body: undefined; readonly answer: undefined };
};

/** Facts from a process `hops` processes away; undefined if they do not arrive in time. */
export function factsWithin(
  hops: number,
  asked: Promise<SessionFacts | undefined>,
): Promise<SessionFacts | undefined> {
  return answerWithin(hops * END_HOP_MS, asked, undefined);
}

/**
 * The result of typing in a process `hops` processes away; `unreachable` if it does not arrive in
 * time.
 */
export function typedWithin(hops: number, asked: Promise<JoinAnswer>): Promise<JoinAnswer> {
  return answerWithin<JoinAnswer>(hops * END_HOP_MS, asked, "unreachable");
}

/** Output from a process `hops` processes away; `unreachable` if it does not arrive in time. */
export function outputWithin(hops: number, asked: Promise<OutputAnswer>): Promise<OutputAnswer> {
  return answerWithin<OutputAnswer>(OUTPUT_WAIT_MS + hops * END_HOP_MS, asked, "unreachable");
}

/**
 * The result from a process `hops` processes before the session's; `unreachable` if it does not
 * arrive in time.
 */
export function endWithin(hops: number, asked: Promise<EndResult>): Promise<EndResult> {
  return answerWithin<EndResult>(MAX_END_MS + hops * END_HOP_MS, asked, "unreachable");
}

function answerWithin<T>(ms: number, asked: Promise<T>, otherwise: T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(otherwise), ms);
  });
  const gone = asked.catch(() => otherwise);
  return Promise.race([gone, late]).finally(() => clearTimeout(timer));
}

/**
 * `manifests`: the cluster's manifests. `named`: certificates, keys, authorities, tokens and
 * policies that the configuration names.
 */
export type KeptKind = "manifests" | "named";

/**
 * The files that a worker last found valid, kept in the primary for workers that start while the
 * files are invalid.
 */
export class KeptFiles {
  #digest: string | undefined;
  #files: readonly NamedText[] | undefined;

  /** Undefined until the first files are kept. */
  get files(): readonly NamedText[] | undefined {
    return this.#files;
  }

  /**
   * True if these files are new. All workers read the same files, so only one of them has to send
   * them.
   */
  wants(digest: string): boolean {
    return digest !== this.#digest;
  }

  keep(files: readonly NamedText[]): void {
    this.#digest = digestOf(files);
    this.#files = files;
  }
}

/**
 * A worker's access to the files that the primary keeps. A rejection means that the primary has
 * died.
 */
interface KeptFilesCalls {
  wants(digest: string): Promise<boolean>;
  keep(files: readonly NamedText[]): void;
  recall(): Promise<readonly NamedText[] | undefined>;
}

/** Valid files that outlive the process that read them. */
export interface LastGoodFiles {
  keep(files: readonly NamedText[]): void;
  /** Undefined if none were kept. */
  recall(): Promise<readonly NamedText[] | undefined>;
}

export function lastGoodFiles({ wants, keep, recall }: KeptFilesCalls): LastGoodFiles {
  return {
    keep: (files) => {
      wants(digestOf(files)).then(
        (isWanted) => {
          if (isWanted) keep(files);
        },
        () => {},
      );
    },
    recall,
  };
}

function digestOf(files: readonly NamedText[]): string {
  const hash = createHash("sha256");
  for (const { name, text } of files) hash.update(`${name.length} ${text.length} ${name}${text}`);
  return hash.digest("base64");
}
