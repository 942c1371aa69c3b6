import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Component } from "../../lifecycle/component.ts";
import { ListeningSockets } from "../../net/listening-sockets.ts";
import { newReplicaId } from "../../sessions/session-id.ts";

/** The folder of the gateway's Unix sockets. Only its own user may enter it. */
export interface SocketFolder extends Component {
  readonly path: string;
}

/**
 * What a program inherits from its predecessor and passes to its successor: listening sockets, replica
 * id and socket folder.
 */
export class Lineage {
  readonly sockets: ListeningSockets;
  /** From `newReplicaId`. Predecessor and successor share it, so other replicas see one replica. */
  readonly replicaId: string;
  #folder: string | undefined;
  #hasSuccessor = false;

  constructor(
    sockets: ListeningSockets = new ListeningSockets(),
    inherited:
      | { readonly replicaId: string; readonly socketFolder: string | undefined }
      | undefined = undefined,
  ) {
    this.sockets = sockets;
    this.replicaId = inherited?.replicaId ?? newReplicaId();
    this.#folder = inherited?.socketFolder;
  }

  get folder(): string | undefined {
    return this.#folder;
  }

  /** Opens the predecessor's folder, or creates one. Rejects if it cannot be created. */
  async openFolder(): Promise<SocketFolder> {
    const folder = this.#folder ?? (await mkdtemp(path.join(tmpdir(), "sluice-workers-")));
    this.#folder = folder;
    // An abandoned start exits without calling `stop`.
    const removeAtExit = (): void => {
      if (!this.#hasSuccessor) rmSync(folder, { recursive: true, force: true });
    };
    process.once("exit", removeAtExit);
    return {
      path: folder,
      stop: async () => {
        process.off("exit", removeAtExit);
        if (!this.#hasSuccessor) await rm(folder, { recursive: true, force: true });
      },
    };
  }

  /** A successor now serves: it owns the shared folder and accepts new connections. */
  handOver(): void {
    this.#hasSuccessor = true;
    this.sockets.close();
  }
}
