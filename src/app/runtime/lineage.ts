import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Component } from "../../lifecycle/component.ts";
import { ListeningSockets } from "../../net/listening-sockets.ts";
import { newReplicaId } from "../../sessions/resumable/replica-name.ts";

/** Where the processes of a gateway meet: only this user may enter it. */
export interface SocketFolder extends Component {
  readonly path: string;
}

/**
 * What a program has from the one that it replaces, and leaves to the one that replaces it: listening sockets, and where sessions of
 * either are found.
 */
export class Lineage {
  readonly sockets: ListeningSockets;
  /** Of `newReplicaId`: both programs are one replica to the others. */
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

  /** The predecessor's, or a new one. Rejects where none can be made. */
  async openFolder(): Promise<SocketFolder> {
    const folder = this.#folder ?? (await mkdtemp(path.join(tmpdir(), "sluice-workers-")));
    this.#folder = folder;
    // A start that is given up ends without `stop`.
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

  /** Another program serves in this one's place: what both use is its from now on, and new connections are. */
  handOver(): void {
    this.#hasSuccessor = true;
    this.sockets.close();
  }
}
