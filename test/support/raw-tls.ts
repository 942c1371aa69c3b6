import { connect } from "node:tls";

export interface RawAnswer {
  readonly head: string;
  readonly status: number;
}

/**
 * Sends these bytes over TLS and returns the head of the answer; "" if the connection ends without
 * one.
 */
export function rawExchange(authority: string, ca: string, request: string): Promise<RawAnswer> {
  const [host = "", port] = authority.split(":");
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), ca });
    let text = "";
    const done = (): void => {
      const head = text.split("\r\n\r\n")[0] ?? "";
      socket.destroy();
      resolve({ head, status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0) });
    };
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString("latin1");
      if (text.includes("\r\n\r\n")) done();
    });
    socket.on("end", done);
    socket.on("error", reject);
    socket.write(request, "latin1");
  });
}
