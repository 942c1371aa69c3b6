import type { SessionLists } from "../admin/admin-server.ts";
import type { Screens } from "../sessions/screens/screens.ts";
import { type EndRequest, type EndResult, endSession } from "../sessions/session-actions.ts";
import { replicaOfSession } from "../sessions/session-id.ts";
import { type JoinAnswer, type JoinRequest, SessionJoins } from "../sessions/session-joins.ts";
import { type OutputAnswer, type OutputRead, SessionOutputs } from "../sessions/session-outputs.ts";
import type { SessionFacts, Sessions } from "../sessions/sessions.ts";

/** The sessions of all processes of this replica, reached through the primary. */
export interface ReplicaSessions {
  list(): Promise<SessionLists>;
  facts(id: string): Promise<SessionFacts | undefined>;
  output(read: OutputRead): Promise<OutputAnswer>;
  type(request: JoinRequest): Promise<JoinAnswer>;
  end(request: EndRequest): Promise<EndResult>;
}

/** The sessions of other replicas. */
interface PeerSessions {
  /**
   * The given sessions, followed by the other replicas', and the names of processes that did not
   * answer.
   */
  listSessions(own: SessionLists): Promise<SessionLists>;
  endSession(replica: string, request: EndRequest): Promise<EndResult>;
  sessionFacts(replica: string, id: string): Promise<SessionFacts | undefined>;
  sessionOutput(replica: string, read: OutputRead): Promise<OutputAnswer>;
  typeInSession(replica: string, request: JoinRequest): Promise<JoinAnswer>;
}

interface DirectoryParts {
  readonly replicaId: string;
  /** This process's sessions. */
  readonly registries: () => readonly Pick<Sessions, "list" | "find">[];
  /** The current screens of these sessions. */
  readonly screens?: Screens | undefined;
  /** Absent: this process is the replica's only one. */
  readonly processes?: ReplicaSessions | undefined;
  /** Undefined: this gateway is the only replica. */
  readonly peers: () => PeerSessions | undefined;
}

/**
 * The gateway's sessions for operators and the API: lists them, and finds one by its id, which
 * names its replica. Each method says which processes it covers.
 */
export class SessionDirectory {
  readonly #parts: DirectoryParts;
  readonly #outputs: SessionOutputs;
  readonly #joins: SessionJoins;

  constructor(parts: DirectoryParts) {
    this.#parts = parts;
    this.#outputs = new SessionOutputs(parts.registries, parts.screens);
    this.#joins = new SessionJoins(parts.registries);
  }

  /** Lists this process's sessions. */
  list(): (ReturnType<Sessions["list"]>[number] & { readonly joiners?: readonly string[] })[] {
    const listed = this.#parts.registries().flatMap((sessions) => sessions.list());
    if (this.#joins.joiners === 0) return listed;
    return listed.map((session) => {
      const joiners = this.#joins.usersOf(session.id);
      return joiners.length === 0 ? session : { ...session, joiners };
    });
  }

  /** Lists this process's sessions; the list is always complete. */
  listHere(): SessionLists {
    return { sessions: this.list(), partial: [] };
  }

  /** Lists this replica's sessions. */
  async listReplica(): Promise<SessionLists> {
    return (await this.#parts.processes?.list()) ?? this.listHere();
  }

  /** The given sessions, which are this replica's, followed by the other replicas' sessions. */
  async listAll(own: SessionLists): Promise<SessionLists> {
    return (await this.#parts.peers()?.listSessions(own)) ?? own;
  }

  /** Lists all replicas' sessions, for the API. */
  async listEverywhere(): Promise<SessionLists> {
    return this.listAll(await this.listReplica());
  }

  /** The number of viewers of this process's sessions. */
  get viewers(): number {
    return this.#outputs.viewers;
  }

  /** The number of joined users of this process's sessions. */
  get joiners(): number {
    return this.#joins.joiners;
  }

  /** Reads the output of a session of this process. */
  outputHere(read: OutputRead): Promise<OutputAnswer> {
    return this.#outputs.read(read);
  }

  /** Reads the output of a session of this replica. Never rejects. */
  async outputInReplica(read: OutputRead): Promise<OutputAnswer> {
    const answer = await this.outputHere(read);
    return answer === "unknown" ? ((await this.#parts.processes?.output(read)) ?? answer) : answer;
  }

  /** Reads the output of a session of any replica. Never rejects. */
  async output(read: OutputRead): Promise<OutputAnswer> {
    const { peers, replicaId } = this.#parts;
    const replica = replicaOfSession(read.id);
    if (replica === undefined || replica === replicaId) return this.outputInReplica(read);
    return (await peers()?.sessionOutput(replica, read)) ?? "unknown";
  }

  /** Types into a session of this process. */
  typeHere(request: JoinRequest): JoinAnswer {
    return this.#joins.type(request);
  }

  /** Types into a session of this replica. Never rejects. */
  async typeInReplica(request: JoinRequest): Promise<JoinAnswer> {
    const answer = this.typeHere(request);
    return answer === "unknown" ? ((await this.#parts.processes?.type(request)) ?? answer) : answer;
  }

  /** Types into a session of any replica. Never rejects. */
  async type(request: JoinRequest): Promise<JoinAnswer> {
    const { peers, replicaId } = this.#parts;
    const replica = replicaOfSession(request.id);
    if (replica === undefined || replica === replicaId) return this.typeInReplica(request);
    return (await peers()?.typeInSession(replica, request)) ?? "unknown";
  }

  factsHere(id: string): SessionFacts | undefined {
    return factsIn(this.#parts.registries(), id);
  }

  /** Facts about a session of this replica. Never rejects. */
  async factsInReplica(id: string): Promise<SessionFacts | undefined> {
    return this.factsHere(id) ?? (await this.#parts.processes?.facts(id));
  }

  /**
   * Facts about a session of any replica. Undefined if it does not run, or if its process does not
   * answer within some seconds. Never rejects.
   */
  async facts(id: string): Promise<SessionFacts | undefined> {
    const { peers, replicaId } = this.#parts;
    const replica = replicaOfSession(id);
    if (replica === undefined || replica === replicaId) return this.factsInReplica(id);
    return peers()?.sessionFacts(replica, id);
  }

  /** Ends a session of this process. */
  endHere(request: EndRequest): Promise<EndResult> {
    return endSession(this.#parts.registries(), request);
  }

  /** Ends a session of this replica. */
  async endInReplica(request: EndRequest): Promise<EndResult> {
    const { processes, replicaId } = this.#parts;
    const result = await this.endHere(request);
    if (result !== "unknown" || replicaOfSession(request.id) !== replicaId) return result;
    return (await processes?.end(request)) ?? result;
  }

  /** Ends a session of any replica. Never rejects; answers within some seconds (docs/limits.md). */
  async end(request: EndRequest): Promise<EndResult> {
    const { peers, replicaId } = this.#parts;
    const replica = replicaOfSession(request.id);
    if (replica === undefined || replica === replicaId) return this.endInReplica(request);
    return (await peers()?.endSession(replica, request)) ?? "unknown";
  }
}

/** Undefined if these registries run no such session, or if it goes through a proxy subresource. */
function factsIn(registries: readonly Pick<Sessions, "find">[], id: string): SessionFacts | undefined {
  for (const sessions of registries) {
    const details = sessions.find(id)?.info?.details;
    if (details !== undefined) return { command: details.command, groups: details.groups };
  }
  return undefined;
}
