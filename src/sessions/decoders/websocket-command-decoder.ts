import { CHANNEL, type RemoteCommandVersion, specOf } from "../../../protocols/remotecommand/index.ts";
import type { Farewells } from "../observers/end-observer.ts";
import { RESIZE, STDERR, STDIN, STDOUT } from "../observers/session-observer.ts";
import type { SessionObservers } from "../observers/session-observers.ts";
import { ChannelReader } from "./channel-reader.ts";
import { seeUnmasked, WebSocketDecoder } from "./websocket-decoder.ts";

/** An exec or attach over WebSocket, in any version. */
export class WebSocketCommandDecoder extends WebSocketDecoder {
  readonly #client: ChannelReader;
  readonly #node: ChannelReader;
  readonly #seeClient = (bytes: Uint8Array): void => this.#client.payload(bytes, 0, bytes.byteLength);

  constructor(version: RemoteCommandVersion, observers: SessionObservers, ends: Farewells) {
    super(observers, ends);
    const spec = specOf(version);
    this.#client = new ChannelReader(
      spec,
      (channel) => observers.showsClient || channel === CHANNEL.CLOSE,
      (channel, part) => {
        if (channel === CHANNEL.STDIN) observers.data(STDIN, "client", part);
        else if (channel === CHANNEL.RESIZE) observers.data(RESIZE, "client", part);
        else if (channel === CHANNEL.CLOSE && spec.hasClose && part[0] === CHANNEL.STDIN)
          observers.streamEnd(STDIN, "client");
      },
    );
    this.#node = new ChannelReader(
      spec,
      (channel) => channel === CHANNEL.ERROR || observers.showsNode,
      (channel, part) => {
        if (channel === CHANNEL.ERROR) observers.status(part);
        else if (channel === CHANNEL.STDOUT) observers.data(STDOUT, "node", part);
        else if (channel === CHANNEL.STDERR) observers.data(STDERR, "node", part);
      },
    );
  }

  protected clientMessage(): void {
    this.#client.startMessage();
  }

  protected clientPayload(
    chunk: Uint8Array,
    start: number,
    end: number,
    maskKey: number,
    maskPhase: number,
  ): void {
    const { showsClient, showsEnds } = this.observers;
    if (showsClient || showsEnds) seeUnmasked(chunk, start, end, maskKey, maskPhase, this.#seeClient);
  }

  protected nodeMessage(): void {
    this.#node.startMessage();
  }

  protected nodePayload(chunk: Uint8Array, start: number, end: number): void {
    this.#node.payload(chunk, start, end);
  }
}
