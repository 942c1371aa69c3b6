import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import { unauthorized } from "../../../packages/client/src/api/status.ts";

export interface Caller {
  readonly username: string;
  readonly groups: readonly string[];
  readonly uid?: string;
}

export interface Callers {
  /** The caller, after impersonation. Throws StatusError 401. */
  identify(request: IncomingMessage): Caller;
  ofToken(token: string): Caller | undefined;
}

/**
 * Without tokens every caller is an administrator. A client certificate's common name and
 * organisations identify a caller, too.
 */
export function callersOf(tokens: Readonly<Record<string, Caller>> | undefined): Callers {
  const ofToken = (token: string) =>
    tokens !== undefined && Object.hasOwn(tokens, token) ? tokens[token] : undefined;
  return {
    ofToken,
    identify(request) {
      const found =
        ofToken(bearerOf(request)) ?? certificateCaller(request) ?? (tokens ? undefined : administrator);
      if (found === undefined) throw unauthorized();
      return impersonated(request, found);
    },
  };
}

const administrator: Caller = {
  username: "kubernetes-admin",
  groups: ["system:masters", "system:authenticated"],
};

function bearerOf({ headers }: IncomingMessage): string {
  return /^Bearer (.*)$/.exec(headers.authorization ?? "")?.[1] ?? "";
}

function certificateCaller(request: IncomingMessage): Caller | undefined {
  const socket = request.socket as TLSSocket;
  if (socket.authorized !== true) return undefined;
  const { CN, O } = socket.getPeerCertificate().subject as { CN?: string; O?: string | string[] };
  return CN === undefined ? undefined : { username: CN, groups: [O ?? []].flat() };
}

function impersonated({ headers, rawHeaders }: IncomingMessage, caller: Caller): Caller {
  const username = headers["impersonate-user"];
  if (typeof username !== "string") return caller;
  const uid = headers["impersonate-uid"];
  const groups = rawHeaders.flatMap((name, index) =>
    index % 2 === 0 && name.toLowerCase() === "impersonate-group" ? [rawHeaders[index + 1] as string] : [],
  );
  return { username, groups, ...(typeof uid === "string" && { uid }) };
}
