import type { Server } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";

/** As Go's servers, kube-apiserver and kubelet among them, write it: clients and people search for the sentence. */
export const PLAIN_HTTP_ANSWER =
  "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";

/** Node keeps the connection under a TLS socket that was given one. */
type OverConnection = TLSSocket & { readonly _parent?: Duplex | null };

/**
 * Answers plain HTTP on a TLS server. OpenSSL tells by the first record, so that handshakes pay nothing: methods GET, POST, HEAD and
 * PUT; any other beginning closes the connection without a word.
 */
export function answerPlainHttp(server: Server): void {
  server.on("tlsClientError", (error: Error & { readonly code?: string }, socket: OverConnection) => {
    const { _parent: connection } = socket;
    if (error.code !== "ERR_SSL_HTTP_REQUEST" || connection?.writable !== true) return;
    const destroy = (): void => void connection.destroy();
    // The client may be gone, and its connection has no other listener any more.
    connection.on("error", destroy);
    connection.end(PLAIN_HTTP_ANSWER, destroy);
  });
}
