import type { Server } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";

/** The text of Go's servers, including kube-apiserver and kubelet: clients and people search for it. */
export const PLAIN_HTTP_ANSWER =
  "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/** Node stores the connection under a TLS socket here. */
type OverConnection = TLSSocket & { readonly _parent?: (Duplex & { readonly bytesWritten?: number }) | null };

/** OpenSSL's codes for a first record that is not TLS: GET, POST, HEAD or PUT; CONNECT; anything else. */
const NOT_TLS: readonly string[] = [
  "ERR_SSL_HTTP_REQUEST",
  "ERR_SSL_HTTPS_PROXY_REQUEST",
  "ERR_SSL_WRONG_VERSION_NUMBER",
];

/**
 * Like nginx, answers plain HTTP on a TLS server, and anything else that is not TLS. OpenSSL detects
 * it from the first record, so handshakes cost no more, and a failure later in one gets no answer.
 */
export function answerPlainHttp(server: Server): void {
  server.on("tlsClientError", (error: Error & { readonly code?: string }, socket: OverConnection) => {
    const { _parent: connection } = socket;
    if (connection?.writable !== true || !NOT_TLS.includes(error.code ?? "")) return;
    if ((connection.bytesWritten ?? 0) > 0) return;
    const destroy = (): void => void connection.destroy();
    // The client may have left, and its connection has no other 'error' listener now.
    connection.on("error", destroy);
    connection.end(PLAIN_HTTP_ANSWER, destroy);
  });
}
