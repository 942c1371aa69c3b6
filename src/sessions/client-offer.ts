import {
  type HeaderList,
  hasHeader,
  headerValues,
  listElements,
} from "@sluice/client/internal/http/header-list";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";

/**
 * The protocols that the client offers to switch to. `unsupported`: an upgrade that no streaming route
 * supports.
 */
export type ClientOffer =
  | { readonly transport: "websocket"; readonly protocols: readonly string[] }
  | { readonly transport: "spdy"; readonly protocols: readonly string[] }
  | { readonly transport: "unsupported"; readonly upgrade: string }
  | { readonly transport: "none" };

/**
 * Reads the offer as Kubernetes does: a Connection line contains "upgrade"; Upgrade equals "websocket"
 * or contains "spdy/3.1". Any other upgrade, such as `h2c`, is refused (kubernetes/kubernetes#72112).
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

/** Throws StatusError 400 for an upgrade to any other protocol, and for an upgrade with a body. */
export function requireCarriableUpgrade({
  offer,
  headers,
}: {
  readonly offer: ClientOffer;
  readonly headers: HeaderList;
}): void {
  if (offer.transport === "unsupported") {
    throw WIRE_ERRORS["upgrade-unsupported"].streaming();
  }
  if (hasBody(headers)) throw WIRE_ERRORS["upgrade-with-body"].streaming();
}

/** The gateway would take body bytes for the session's first ones. No Kubernetes client sends a body. */
function hasBody(headers: HeaderList): boolean {
  const lengths = headerValues(headers, "content-length");
  return hasHeader(headers, "transfer-encoding") || lengths.some((length) => !/^0+$/.test(length));
}
