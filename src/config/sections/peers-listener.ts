import { isIP } from "node:net";
import { checked, table, type ValueOf } from "@sluice/client/internal/config/field";
import { file, string } from "@sluice/client/internal/config/fields";
import { strings } from "../list-fields.ts";
import { optionalSection, section } from "../section-fields.ts";
import { addressFields, checkHost } from "./listener-address.ts";

const DEFAULT_PEER_NAME = "sluice-peer";

const REQUIRED = "is required: replicas know each other by their certificates";

const tls = table({
  certFile: file("Certificate chain, PEM, valid for servers and clients.", "certificates", {
    required: REQUIRED,
  }),
  keyFile: file("Private key, PEM.", "private key", {
    required: REQUIRED,
    certificate: "certFile",
  }),
  certificateAuthorityFile: file("Authorities of the replicas' certificates, PEM.", "certificates", {
    required: REQUIRED,
  }),
  name: string("DNS name that every replica's certificate must carry.", {
    default: DEFAULT_PEER_NAME,
    check: checkHost,
  }),
});

const service = table({
  name: string("Name of the Service, which must publish addresses that are not ready.", {
    required: "is required: the Service whose EndpointSlices name the replicas",
  }),
  namespace: string("Its namespace.", { default: "default" }),
  port: string("Name of its port.", { default: "peer" }),
});

/** The gateway's other replicas. */
export const peersListener = checked(
  table({
    ...addressFields(8444),
    tls: section("How replicas identify themselves to each other.", tls),
    sessionKeyFile: file(
      "Keys of session names, the same on all replicas: 1 to 4 lines of at least 32 characters. The first signs; all are accepted.",
      "session keys",
      { required: "is required: replicas accept the sessions' names that it signs" },
    ),
    addresses: strings("`host:port` of each replica; may include this one.", { check: checkPeer }),
    service: optionalSection("Replicas are the endpoints of this headless Service.", service),
  }),
  ({ addresses, service: named }, section) => {
    if (addresses.length > 0 === (named !== undefined)) {
      section.problem("addresses", "must be given, or else service: where the other replicas are");
    }
  },
);

export type PeersListener = ValueOf<typeof peersListener>;

/** Splits `host:port`; an IPv6 address has brackets. */
export function peerAddressOf(value: string): { readonly host: string; readonly port: number } | undefined {
  const [, bracketed, plain, digits = ""] = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(value) ?? [];
  const host = bracketed ?? plain ?? "";
  const port = Number(digits);
  const isHost = bracketed === undefined ? checkHost(host) === undefined : isIP(host) === 6;
  return isHost && port >= 1 && port <= 65_535 ? { host, port } : undefined;
}

function checkPeer(value: string): string | undefined {
  if (peerAddressOf(value) !== undefined) return undefined;
  return `must be host:port such as "10.0.0.7:8444", got ${JSON.stringify(value.slice(0, 80))}`;
}
