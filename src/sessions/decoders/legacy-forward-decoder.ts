import { dataChannelOf, PORT_PREFIX_BYTES } from "@sluice/protocols/portforward";
import { channelByte } from "@sluice/protocols/remotecommand";
import type { Farewells } from "../observers/end-observer.ts";
import { legacyStreams } from "../observers/session-observer.ts";
import type { SessionObservers } from "../observers/session-observers.ts";
import { ChannelReader } from "./channel-reader.ts";
import { WebSocketDecoder } from "./websocket-decoder.ts";

/**
 * Decodes a WebSocket port-forward from before the tunnel: two channels for each port in the request,
 * which authorization has covered.
 */
export class LegacyForwardDecoder extends WebSocketDecoder {
  readonly #dataChannels: ReadonlySet<number>;
  protected readonly client: ChannelReader;
  protected readonly node: ChannelReader;
  /** Each node channel begins with its port number: how many of those bytes are still to come. */
  readonly #prefixBytesLeft: number[];

  constructor(ports: readonly number[], isBase64: boolean, observers: SessionObservers, ends: Farewells) {
    super(observers, ends);
    const streams = legacyStreams(ports);
    this.#dataChannels = new Set(
      ports.map((_port, index) => channelByte(dataChannelOf(index), { isBase64 })),
    );
    for (let channel = 0; channel < streams.length; channel += 2) {
      for (const stream of streams.slice(channel, channel + 2).reverse()) observers.stream(stream);
    }
    this.#prefixBytesLeft = streams.map(() => PORT_PREFIX_BYTES);
    this.client = new ChannelReader(
      { isBase64 },
      () => observers.showsInput,
      (channel, part) => {
        const stream = streams[channel];
        if (stream?.type === "data") this.refuse(observers.data(stream, "client", part));
      },
    );
    this.node = new ChannelReader(
      { isBase64 },
      () => observers.showsNode,
      (channel, part) => {
        const stream = streams[channel];
        const payload = this.#withoutPort(channel, part);
        if (stream !== undefined && payload.byteLength > 0)
          this.refuse(observers.data(stream, "node", payload));
      },
    );
  }

  /** Error channels are the server's. */
  protected override isWantedChannel(firstByte: number): boolean {
    return this.#dataChannels.has(firstByte);
  }

  protected get readsClient(): boolean {
    return this.observers.showsInput;
  }

  protected get readsNode(): boolean {
    return this.observers.showsNode;
  }

  protected override skipNode(): void {
    super.skipNode();
    // Nodes write the port numbers first: an observer that comes later has missed them.
    this.#prefixBytesLeft.fill(0);
  }

  #withoutPort(channel: number, part: Uint8Array): Uint8Array {
    const left = this.#prefixBytesLeft[channel] ?? 0;
    if (left === 0) return part;
    this.#prefixBytesLeft[channel] = Math.max(0, left - part.byteLength);
    return part.subarray(Math.min(left, part.byteLength));
  }
}
