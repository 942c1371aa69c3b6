import { HeaderEdit, HeaderNames } from "@sluice/client/internal/http/header-edit";
import {
  type HeaderList,
  headerTokens,
  headerValue,
  listElements,
} from "@sluice/client/internal/http/header-list";
import type { FieldLines } from "@sluice/protocols/http1";

/**
 * Headers about one connection (RFC 9110 section 7.6.1), with the historical Proxy-Connection and
 * Keep-Alive.
 */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

// If Connection named one of these, the next reader would lose the message's target or its end.
const NEVER_NOMINATED = ["host", "content-length"];

/** Also in CGI's spelling with `_`. A `content_length` goes, too; `content-length` itself stays. */
const HOP_BY_HOP_NAMES = new HeaderNames([...HOP_BY_HOP, "content_length"], "any-dash");

/**
 * An edit that drops hop-by-hop headers and all that `Connection` names. Begin with it: a caller
 * could otherwise name X-Forwarded-For or an identity header and have ours removed (CVE-2021-31999,
 * CVE-2022-23652). `Trailer` stays, since trailers are forwarded.
 */
export function editWithoutHopByHop(headers: HeaderList | FieldLines): HeaderEdit {
  const edit = new HeaderEdit(headers);
  const options = edit.received("connection");
  edit.drop(HOP_BY_HOP_NAMES);
  for (const value of options) if (!USUAL_OPTIONS.has(value)) dropNominated(edit, value);
  return edit;
}

/** The usual values, which name no other header. */
const USUAL_OPTIONS: ReadonlySet<string> = new Set(["keep-alive", "Keep-Alive"]);

function dropNominated(edit: HeaderEdit, connection: string): void {
  const nominated = listElements([connection])
    .map((name) => name.toLowerCase())
    .filter((name) => !HOP_BY_HOP.has(name) && !NEVER_NOMINATED.includes(name));
  if (nominated.length > 0) edit.drop(new HeaderNames(nominated));
}

/** The same, with `TE: trailers` if the sender accepts trailers. */
export function requestEdit(headers: HeaderList): HeaderEdit {
  const edit = editWithoutHopByHop(headers);
  const te = headerValue(headers, "te");
  if (te === "trailers" || (te !== undefined && listsTrailers(headers))) edit.add("TE", "trailers");
  return edit;
}

function listsTrailers(headers: HeaderList): boolean {
  return headerTokens(headers, "te").some((coding) => coding.split(";")[0]?.trim() === "trailers");
}

/** The same for a request that switches protocols: `Connection` is rebuilt and names only `Upgrade`. */
export function upgradeEdit(headers: HeaderList, protocol: string): HeaderEdit {
  const edit = editWithoutHopByHop(headers);
  edit.add("Connection", "Upgrade");
  edit.add("Upgrade", protocol);
  return edit;
}
