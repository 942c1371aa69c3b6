import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls, type TLSSocket } from "node:tls";

/**
 * A connection to a port of this machine, from one of its addresses, that begins with these bytes.
 */
export function proxiedSocket(port: number, header: string | Buffer, localAddress = "127.0.0.9"): Socket {
  const socket = connect({ host: "127.0.0.1", port, localAddress });
  socket.on("error", () => {});
  socket.write(header);
  return socket;
}

/** TLS behind them. */
export async function tlsOver(socket: Socket, ALPNProtocols = ["http/1.1"]): Promise<TLSSocket> {
  const secure = connectTls({
    socket,
    servername: "a.example.com",
    rejectUnauthorized: false,
    ALPNProtocols,
  });
  secure.on("error", () => {});
  await once(secure, "secureConnect");
  return secure;
}

/** Everything that is received in answer to the text, until the connection closes. */
export async function exchangeOver(socket: Socket, text: string): Promise<string> {
  let received = "";
  socket.on("data", (chunk: Buffer) => {
    received += chunk.toString("latin1");
  });
  if (text !== "") socket.write(text);
  if (!socket.closed) await once(socket, "close");
  return received;
}
