import type { SessionEnd } from "@sluice/client/internal/sessions/session-end";
import { parseStreamHeaders, StreamPairing, timeoutText } from "@sluice/protocols/portforward";
import { RST, type SpdyStream, type SpdyStreamHandler } from "@sluice/protocols/spdy";
import type { SessionLifecycle } from "../../lifecycle.ts";
import type { SessionStream } from "../../observers/session-observer.ts";
import { type ClientStream, ForwardedPair, type PairOwner, sizeOf } from "./forwarded-pair.ts";

interface ClientStreamsHandler {
  /** An observer forbids the stream. */
  refused(end: SessionEnd): void;
  paired(pair: ForwardedPair): void;
}

/** The streams that a port-forward's client opens: two make a forwarded connection. */
export class ClientStreams {
  readonly #life: SessionLifecycle;
  readonly #owner: PairOwner;
  readonly #handler: ClientStreamsHandler;
  readonly #pairing = new StreamPairing<ClientStream>();

  constructor(life: SessionLifecycle, owner: PairOwner, handler: ClientStreamsHandler) {
    this.#life = life;
    this.#owner = owner;
    this.#handler = handler;
  }

  opened(stream: SpdyStream): SpdyStreamHandler | number {
    const parsed = parseStreamHeaders(stream.id, stream.headers);
    const { headers } = stream;
    const shown: SessionStream = {
      type: headers.get("streamtype") === "data" ? "data" : "error",
      connection: parsed.ok ? parsed.value.requestId : headers.get("requestid"),
      port: headers.get("port"),
    };
    const refusal = this.#life.observers.stream(shown);
    if (refusal !== undefined) this.#handler.refused(refusal);
    if (refusal !== undefined || !parsed.ok || this.#life.isOver) return RST.CANCEL;
    const client: ClientStream = { stream, shown, early: [], hasFinished: false };
    const result = this.#pairing.add(parsed.value, client, this.#life.clock.now());
    if (result.type === "duplicate") {
      result.pending.error?.stream.write(new TextEncoder().encode(result.text));
      return RST.CANCEL;
    }
    if (result.type === "paired") {
      const pair = new ForwardedPair(result.pair, this.#owner);
      result.pair.data.pair = pair;
      this.#handler.paired(pair);
    }
    return shown.type === "error" ? this.#errorHandler(client) : this.#dataHandler(client);
  }

  /** Ends streams whose partner was not opened in time. */
  tick(nowMs: number): void {
    for (const { requestId, error, data } of this.#pairing.expire(nowMs)) {
      error?.stream.write(new TextEncoder().encode(timeoutText(this.#life.info?.id ?? "", requestId)));
      error?.stream.finish();
      data?.stream.reset();
      this.#owner.early(-sizeOf(data?.early.splice(0) ?? []));
    }
  }

  #errorHandler(client: ClientStream): SpdyStreamHandler {
    return { onData: () => {}, onEnd: () => this.#pairing.remove(client) };
  }

  #dataHandler(client: ClientStream): SpdyStreamHandler {
    return {
      onData: (part, fin) => {
        if (part.byteLength > 0) {
          if (!this.#owner.carries(client.shown, "client", part)) return;
          if (client.pair !== undefined) client.pair.write(part);
          else {
            client.early.push(Uint8Array.from(part));
            this.#owner.early(part.byteLength);
          }
        }
        if (!fin) return;
        client.hasFinished = true;
        this.#owner.ended(client.shown, "client");
        client.pair?.finish();
      },
      onEnd: ({ type }) => {
        this.#pairing.remove(client);
        if (client.pair === undefined) this.#owner.early(-sizeOf(client.early.splice(0)));
        if (type !== "reset") return;
        this.#owner.ended(client.shown, "client");
        client.pair?.clientReset();
      },
    };
  }
}
