import type { Server } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";

/** As Go's servers, kube-apiserver and kubelet among them, write it: clients and people search for the sentence. */
export const PLAIN_HTTP_ANSWER =
  "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/** Node keeps the connection under a TLS socket that was given one. */
type OverConnection = TLSSocket & { readonly _parent?: (Duplex & { readonly bytesWritten?: number }) | null };

/** OpenSSL's words for a first record without TLS: GET, POST, HEAD or PUT; CONNECT; all else. */
const NOT_TLS: readonly string[] = [
  "ERR_SSL_HTTP_REQUEST",
  "ERR_SSL_HTTPS_PROXY_REQUEST",
  "ERR_SSL_WRONG_VERSION_NUMBER",
];

/**
 * Answers plain HTTP on a TLS server, and what is neither HTTP nor TLS, as nginx does. OpenSSL tells
 * by the first record: handshakes pay nothing, and one that has begun is not answered.
 */
export function answerPlainHttp(server: Server): void {
  server.on("tlsClientError", (error: Error & { readonly code?: string }, socket: OverConnection) => {
    const { _parent: connection } = socket;
    if (connection?.writable !== true || !NOT_TLS.includes(error.code ?? "")) return;
    if ((connection.bytesWritten ?? 0) > 0) return;
    const destroy = (): void => void connection.destroy();
    // The client may be gone, and its connection has no other listener any more.
    connection.on("error", destroy);
    connection.end(PLAIN_HTTP_ANSWER, destroy);
  });
}
