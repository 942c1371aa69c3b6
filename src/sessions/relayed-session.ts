import { type HeaderList, headerValue } from "@sluice/client/internal/http/header-list";
import { tunnelOffers } from "@sluice/protocols/portforward";
import { isRemoteCommandVersion, type RemoteCommandVersion } from "@sluice/protocols/remotecommand";
import type { Limits } from "../config/sections/limits.ts";
import { ForwardDecoder } from "./decoders/forward-decoder.ts";
import { LegacyForwardDecoder } from "./decoders/legacy-forward-decoder.ts";
import type { PassThroughDecoder } from "./decoders/pass-through-decoder.ts";
import { SpdyCommandDecoder } from "./decoders/spdy-command-decoder.ts";
import { WebSocketCommandDecoder } from "./decoders/websocket-command-decoder.ts";
import { CommandEndObserver, type EndObserver, ForwardEndObserver } from "./observers/end-observer.ts";
import type { SessionObservers } from "./observers/session-observers.ts";
import type { StreamingRequest } from "./streaming-request.ts";

/** How to decode a pass-through session, given the protocol that both sides agreed on. */
export interface PassThrough {
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
