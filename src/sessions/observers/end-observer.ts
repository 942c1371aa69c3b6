import { FrameWalker } from "../../../protocols/spdy/index.ts";
import { endOf, type SessionEnd } from "../carriers/session-end.ts";

/**
 * Reads along with a session that passes through, to know how it ends and which side ended it. It looks at headers, and at the payload of the
 * status channel alone; it changes, delays and holds nothing that passes.
 */
export abstract class EndObserver {
  #clientLeft: string | undefined;

  /** The next bytes of the client; a view that is not kept. */
  abstract fromDownstream(chunk: Uint8Array): void;
  /** The next bytes of the node; a view that is not kept. */
  abstract fromUpstream(chunk: Uint8Array): void;
  /** The node has said how the session ended. */
  abstract get hasResult(): boolean;
  /** What the node said; `how` its connection ended is all there is to say where it said nothing. */
  protected abstract judge(how: string): SessionEnd;

  /** The client said that it leaves, or ended its side. Behind the node's result that is no more than the answer to it. */
  clientLeft(how: string): void {
    if (!this.hasResult) this.#clientLeft ??= how;
  }

  /** What it means that the session is over now; `how`: the way in which the node's connection ended. */
  nodeEnd(how: string): SessionEnd {
    return this.#clientLeft === undefined ? this.judge(how) : endOf("client-gone", this.#clientLeft);
  }
}

/** A port-forward over SPDY, in a tunnel or not: Kubernetes' peers say GOAWAY before they end it; a killed one says nothing. */
export class ForwardEndObserver extends EndObserver {
  readonly #client = new FrameWalker(() => this.clientLeft("the client ended the session"));
  readonly #node = new FrameWalker(() => {
    this.#hasNodeEnded = true;
  });
  #hasNodeEnded = false;

  get hasResult(): boolean {
    return this.#hasNodeEnded;
  }

  fromDownstream(chunk: Uint8Array): void {
    this.#client.push(chunk);
  }

  fromUpstream(chunk: Uint8Array): void {
    this.#node.push(chunk);
  }

  protected judge(how: string): SessionEnd {
    return this.#hasNodeEnded
      ? endOf("completed", "the node ended the session")
      : endOf("upstream-lost", `${how} without GOAWAY`);
  }
}
