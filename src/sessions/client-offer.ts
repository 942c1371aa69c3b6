import { badRequest } from "../api/status.ts";
import { type HeaderList, hasHeader, headerValues, listElements } from "../http/header-list.ts";

/** What the client would like to switch to. `unsupported`: it asks for an upgrade that no streaming route speaks. */
export type ClientOffer =
  | { readonly transport: "websocket"; readonly protocols: readonly string[] }
  | { readonly transport: "spdy"; readonly protocols: readonly string[] }
  | { readonly transport: "unsupported"; readonly upgrade: string }
  | { readonly transport: "none" };

/**
 * Reads the offer from the request's headers, by Kubernetes' rules: an upgrade is wanted when any Connection line
 * contains "upgrade"; it is a WebSocket when Upgrade equals "websocket", SPDY when it contains "spdy/3.1", in any case.
 *
 * Only these two are let through (kubernetes/kubernetes#72112): anything else, `h2c` or a list above all, would reach
 * the node as a protocol that nobody here understands.
 */
export function clientOfferOf(headers: HeaderList): ClientOffer {
  const wantsUpgrade = headerValues(headers, "connection").some((value) =>
    value.toLowerCase().includes("upgrade"),
  );
  if (!wantsUpgrade) return { transport: "none" };
  const upgrade = headerValues(headers, "upgrade").join(", ");
  const wanted = upgrade.toLowerCase().trim();
  if (wanted === "websocket") {
    return {
      transport: "websocket",
      protocols: listElements(headerValues(headers, "sec-websocket-protocol")),
    };
  }
  if (wanted === "spdy/3.1") {
    return { transport: "spdy", protocols: listElements(headerValues(headers, "x-stream-protocol-version")) };
  }
  return { transport: "unsupported", upgrade };
}

/** Throws StatusError 400 for an upgrade to something else than a session's protocols, and for one with a body. */
export function requireCarriableUpgrade({
  offer,
  headers,
}: {
  readonly offer: ClientOffer;
  readonly headers: HeaderList;
}): void {
  if (offer.transport === "unsupported") {
    throw badRequest("unable to upgrade: only websocket and SPDY/3.1 are supported");
  }
  if (hasBody(headers)) throw badRequest("an upgrade request can not have a body");
}

/** Bytes of a body would be taken for the first ones of the session. No client of Kubernetes sends any. */
function hasBody(headers: HeaderList): boolean {
  const lengths = headerValues(headers, "content-length");
  return hasHeader(headers, "transfer-encoding") || lengths.some((length) => !/^0+$/.test(length));
}
