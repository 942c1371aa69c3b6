export {
  dataChannelOf,
  decodePortPrefix,
  encodePortPrefix,
  errorChannelOf,
  forwardErrorText,
  LEGACY_SUBPROTOCOLS,
  type ParsedPort,
  type ParsedPorts,
  type ParsedStreamHeaders,
  PORT_PREFIX_BYTES,
  type PortForwardStreamHeaders,
  type PortForwardStreamType,
  parsePort,
  parsePortsQuery,
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
