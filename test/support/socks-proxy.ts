import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { closeServer, listen } from "./http/loopback.ts";

export interface TestSocksProxy {
  readonly port: number;
  /** The requested addresses, in hexadecimal from the address type on, and the users. */
  readonly asked: readonly { readonly address: string; readonly user: string | undefined }[];
  close(): Promise<void>;
}

export interface TestSocksOptions {
  /** The `user:password` that the proxy requires. */
  readonly credentials?: string;
  /** The port that every connection leads to, whatever address is requested. */
  readonly targetPort: number;
  /** The reply to every request, instead of a connection. */
  readonly refusal?: number;
  /** Sends its replies byte by byte. */
  readonly isSlow?: boolean;
}

/** A SOCKS5 proxy (RFC 1928, 1929) that records its requests. */
export async function startSocksProxy(options: TestSocksOptions): Promise<TestSocksProxy> {
  const asked: { address: string; user: string | undefined }[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    sockets.add(client);
    client.on("error", () => client.destroy()).once("close", () => sockets.delete(client));
    serve(client, options, asked).catch(() => client.destroy());
  });
  const port = await listen(server);
  return { port, asked, close: () => closeServer(server, sockets) };
}

async function serve(
  client: Socket,
  { credentials, targetPort, refusal, isSlow }: TestSocksOptions,
  asked: { address: string; user: string | undefined }[],
): Promise<void> {
  const read = async (bytes: number): Promise<Buffer> => {
    for (;;) {
      const got = client.read(bytes) as Buffer | null;
      if (got !== null) return got;
      await once(client, "readable");
    }
  };
  const say = (...bytes: number[]): void => {
    for (const piece of isSlow ? bytes.map((byte) => [byte]) : [bytes]) client.write(Uint8Array.from(piece));
  };
  const methods = [...(await read((await read(2))[1] as number))];
  let user: string | undefined;
  if (credentials === undefined) say(5, 0);
  else if (!methods.includes(2)) {
    say(5, 0xff);
    return;
  } else {
    say(5, 2);
    const name = await read((await read(2))[1] as number);
    const password = await read((await read(1))[0] as number);
    user = `${name}:${password}`;
    say(1, user === credentials ? 0 : 1);
  }
  const [, , , type] = await read(4);
  const length = type === 1 ? 4 : type === 4 ? 16 : ((await read(1))[0] as number);
  const address = await read(length + 2);
  asked.push({
    address: `${type} ${address.toString(type === 3 ? "latin1" : "hex").slice(0, type === 3 ? -2 : undefined)}`,
    user,
  });
  if (refusal !== undefined) {
    say(5, refusal, 0, 1, 0, 0, 0, 0, 0, 0);
    return;
  }
  const target = connect({ host: "127.0.0.1", port: targetPort });
  target.on("error", () => client.destroy());
  await once(target, "connect");
  say(5, 0, 0, 3, 2, 0x61, 0x62, 0, 80);
  client.pipe(target).pipe(client);
}
