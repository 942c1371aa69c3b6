export {
  dataChannelOf,
  decodePortPrefix,
  encodePortPrefix,
  errorChannelOf,
  LEGACY_SUBPROTOCOLS,
  type ParsedPorts,
  PORT_PREFIX_BYTES,
  parsePortsQuery,
} from "./legacy-websocket.ts";
export {
  forwardErrorText,
  type ParsedPort,
  type ParsedStreamHeaders,
  type PortForwardStreamHeaders,
  type PortForwardStreamType,
  parsePort,
  parseStreamHeaders,
  streamHeaders,
} from "./stream-headers.ts";
export {
  DEFAULT_PAIR_TIMEOUT_MS,
  type PairingResult,
  type PendingPair,
  type StreamPair,
  StreamPairing,
  timeoutText,
} from "./stream-pairing.ts";
export {
  isShippedTunnelName,
  PORT_FORWARD_PROTOCOL,
  type TunnelOffer,
  tunnelOffers,
  tunnelSubprotocolOf,
} from "./tunnel-protocols.ts";
