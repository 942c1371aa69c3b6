import { type HeaderList, headerValue } from "@sluice/client/internal/http/header-list";
import { dataChannelOf, PORT_PREFIX_BYTES, tunnelOffers } from "@sluice/protocols/portforward";
import {
  channelByte,
  isRemoteCommandVersion,
  type RemoteCommandVersion,
} from "@sluice/protocols/remotecommand";
import type { Limits } from "../config/sections/limits.ts";
import { ChannelReader } from "./decoders/channel-reader.ts";
import { ForwardDecoder } from "./decoders/forward-decoder.ts";
import type { PassThroughDecoder } from "./decoders/pass-through-decoder.ts";
import { SpdyCommandDecoder } from "./decoders/spdy-command-decoder.ts";
import { WebSocketCommandDecoder } from "./decoders/websocket-command-decoder.ts";
import { WebSocketDecoder } from "./decoders/websocket-decoder.ts";
import {
  CommandEndObserver,
  type EndObserver,
  type Farewells,
  ForwardEndObserver,
} from "./observers/end-observer.ts";
import { legacyStreams } from "./observers/session-observer.ts";
import type { SessionObservers } from "./observers/session-observers.ts";
import type { StreamingRequest } from "./streaming-request.ts";

/**
 * Decodes a WebSocket port-forward from before the tunnel: two channels for each port in the request,
 * which authorization has covered.
 */
class LegacyForwardDecoder extends WebSocketDecoder {
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

/** How to decode a pass-through session, given the protocol that both sides agreed on. */
interface PassThrough {
  readonly ends: EndObserver;
  /** For commands: see RelayedSession. */
  readonly closesBehindResult: boolean;
  decoderFor(observers: SessionObservers): PassThroughDecoder;
}

/** True if both sides agreed on SPDY in WebSocket messages, which a Tunnel carries. */
export function isTunnel({ offer }: Pick<StreamingRequest, "offer">, answer: HeaderList): boolean {
  const protocol = headerValue(answer, "sec-websocket-protocol") ?? "";
  return offer.transport === "websocket" && tunnelOffers([protocol]).length > 0;
}

/** For all but tunnels. `answer`: the headers of the node's 101. */
export function passThroughOf(
  { offer, subresource, ports }: Pick<StreamingRequest, "offer" | "subresource" | "ports">,
  answer: HeaderList,
  { spdy }: Pick<Limits, "spdy">,
): PassThrough {
  const isSpdy = offer.transport === "spdy";
  const protocol = headerValue(answer, isSpdy ? "x-stream-protocol-version" : "sec-websocket-protocol") ?? "";
  if (subresource !== "portforward") {
    // Without the header, or without a subprotocol, the version is v1.
    const version: RemoteCommandVersion = isRemoteCommandVersion(protocol) ? protocol : "channel.k8s.io";
    const ends = new CommandEndObserver(version, isSpdy ? "spdy" : "websocket");
    return {
      ends,
      closesBehindResult: true,
      decoderFor: (observers) =>
        isSpdy
          ? new SpdyCommandDecoder(version, spdy, observers, ends)
          : new WebSocketCommandDecoder(version, observers, ends),
    };
  }
  const ends = new ForwardEndObserver(isSpdy ? "GOAWAY" : "");
  return {
    ends,
    closesBehindResult: false,
    decoderFor: (observers) => {
      if (isSpdy) return new ForwardDecoder(spdy, observers, ends);
      return new LegacyForwardDecoder(ports, protocol === "v4.base64.channel.k8s.io", observers, ends);
    },
  };
}
