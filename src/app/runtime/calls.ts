import type { AdminSession, SessionLists } from "../../admin/admin-server.ts";
import type { NamedText } from "../../config/named-file-text.ts";
import type { ProbeUpdate } from "../../probes/probe-update.ts";
import type { SessionInfo } from "../../sessions/sessions.ts";
import type { KeptKind } from "./kept-files.ts";

/** A listener by its name in the configuration, and where it is. */
export interface ListenCall {
  readonly name: string;
  readonly address: string;
  readonly port: number;
}

export interface BoundAddress {
  readonly address: string;
  readonly port: number;
}

/** What a worker tells of itself, some milliseconds after something of it changed. */
export interface WorkerReport {
  /** Connections that were handed to it and are over. */
  readonly closed: readonly number[];
  readonly sessions: number;
}

/** A place of a session among those of all workers, or why there is none. */
export type PlaceAnswer = { readonly place: number } | { readonly refusal: string; readonly code: 429 | 503 };

/** What the primary answers to its workers. */
export type PrimaryCalls = {
  readonly listen: { readonly body: ListenCall; readonly answer: BoundAddress };
  /** By its id: this worker has the connection. Comes before anything is read from it. */
  readonly received: { readonly body: number; readonly answer: undefined };
  readonly report: { readonly body: WorkerReport; readonly answer: undefined };
  readonly takePlace: {
    readonly body: { readonly user: string; readonly namespace: string };
    readonly answer: PlaceAnswer;
  };
  readonly giveBack: { readonly body: number; readonly answer: undefined };
  readonly sessionBegan: { readonly body: SessionInfo; readonly answer: undefined };
  /** By its id. */
  readonly sessionOver: { readonly body: string; readonly answer: undefined };
  /** Whether files of this digest, which the worker found right, are to be sent. */
  readonly wantsFiles: {
    readonly body: { readonly kind: KeptKind; readonly digest: string };
    readonly answer: boolean;
  };
  readonly keepFiles: {
    readonly body: { readonly kind: KeptKind; readonly files: readonly NamedText[] };
    readonly answer: undefined;
  };
  /** The last that were right; undefined: none were. */
  readonly recallFiles: { readonly body: KeptKind; readonly answer: readonly NamedText[] | undefined };
  /** Events as lines of JSON. */
  readonly audit: { readonly body: readonly string[]; readonly answer: undefined };
  /** Those of all workers. */
  readonly replicaSessions: { readonly body: undefined; readonly answer: readonly AdminSession[] };
  /** By the one that probes for all. */
  readonly found: { readonly body: readonly ProbeUpdate[]; readonly answer: undefined };
};

/** How a worker is to serve. All workers have the same text, whatever became of the file since. */
export interface WorkerStart {
  readonly configurationText: string;
  readonly configurationFile: string;
  readonly flags: Readonly<Record<string, string>>;
  /** Base64: what TLS tickets are encrypted with, so that a session is resumed by whichever worker gets it. */
  readonly ticketKeys: string;
  /** This replica's, among those of the gateway. */
  readonly replicaId: string;
  /** True in one of them. */
  readonly isFirst: boolean;
  /** How many there are, this one included. */
  readonly workers: number;
  /** Path of the Unix socket for its admin listener, in a folder of the gateway's own. */
  readonly adminSocket: string;
}

/** What workers answer to the primary. `start` fails with the problem in its words. */
export type WorkerCalls = {
  readonly start: { readonly body: WorkerStart; readonly answer: undefined };
  readonly connection: {
    readonly body: { readonly name: string; readonly id: number };
    readonly answer: undefined;
  };
  /** Another text of the configuration, that the primary has found to be right. */
  readonly reload: { readonly body: string; readonly answer: undefined };
  /** What another worker's probes have found. */
  readonly learn: { readonly body: readonly ProbeUpdate[]; readonly answer: undefined };
  /** This worker probes for all from now on; after another one, if `isSuccessor`. Answered when its probes have begun. */
  readonly probe: { readonly body: { readonly isSuccessor: boolean }; readonly answer: undefined };
  /** A process that still runs its event loop answers this at once. */
  readonly beat: { readonly body: undefined; readonly answer: undefined };
  readonly metrics: { readonly body: undefined; readonly answer: readonly unknown[] };
  readonly sessions: { readonly body: undefined; readonly answer: readonly unknown[] };
  /** The sessions of other replicas behind those of this one. */
  readonly allSessions: { readonly body: readonly AdminSession[]; readonly answer: SessionLists };
  /** What it holds of all nodes, or of the one of that name. */
  readonly nodes: { readonly body: string | undefined; readonly answer: readonly unknown[] };
  /** The state of each probe that it runs; empty where another worker probes for all. */
  readonly probes: { readonly body: undefined; readonly answer: readonly object[] };
  /** Everything is still served, and clients are asked to leave; true: another program is there for resumptions. */
  readonly lameDuck: { readonly body: boolean; readonly answer: undefined };
  /** Answered when nothing runs any more. */
  readonly shutDown: { readonly body: undefined; readonly answer: undefined };
};
