import { isIPv4, isIPv6, type Socket } from "node:net";
import { ipv6Groups } from "../../config/address-list.ts";
import { DEFAULT_DIAL_TIMEOUT_MS, type DialOptions, type UpstreamEndpoint } from "../../net/dial.ts";
import { abortedError, UpstreamError } from "../../net/upstream-error.ts";

const VERSION = 5;
const METHOD = { NONE: 0, PASSWORD: 2 } as const;
const PASSWORD_VERSION = 1;
const COMMAND_CONNECT = 1;
const ADDRESS = { IPV4: 1, NAME: 3, IPV6: 4 } as const;
/** Go's texts (golang.org/x/net/internal/socks) for the codes in RFC 1928 section 6. */
const REFUSALS: Readonly<Record<number, string>> = {
  1: "general SOCKS server failure",
  2: "connection not allowed by ruleset",
  3: "network unreachable",
  4: "host unreachable",
  5: "connection refused",
  6: "TTL expired",
  7: "command not supported",
  8: "address type not supported",
};

interface SocksCredentials {
  readonly username: string;
  readonly password: string;
}

/**
 * Makes a SOCKS5 proxy (RFC 1928; passwords: RFC 1929) connect this socket to `endpoint`. Like Go,
 * leaves name lookup to the proxy for both `socks5` and `socks5h`. The socket is paused afterwards. On
 * failure destroys it and throws UpstreamError "dial-failed" or "aborted".
 */
export async function askSocksProxy(
  socket: Socket,
  { host, port }: UpstreamEndpoint,
  credentials: SocksCredentials | undefined,
  { dialTimeoutMs = DEFAULT_DIAL_TIMEOUT_MS, signal }: Pick<DialOptions, "dialTimeoutMs" | "signal">,
): Promise<void> {
  const answers = new Answers(socket, dialTimeoutMs, signal);
  try {
    const methods = credentials === undefined ? [METHOD.NONE] : [METHOD.NONE, METHOD.PASSWORD];
    socket.write(Uint8Array.of(VERSION, methods.length, ...methods));
    const [version, method] = await answers.next(2);
    if (version !== VERSION) throw failed(`unexpected protocol version ${version}`);
    if (method === METHOD.PASSWORD && credentials !== undefined) {
      socket.write(
        Buffer.concat([Uint8Array.of(PASSWORD_VERSION), ...Object.values(credentials).map(counted)]),
      );
      if ((await answers.next(2))[1] !== 0) throw failed("username/password authentication failed");
    } else if (method !== METHOD.NONE) throw failed("no acceptable authentication methods");
    socket.write(Buffer.concat([Uint8Array.of(VERSION, COMMAND_CONNECT, 0), addressOf(host), portOf(port)]));
    const [replyVersion, code, , type] = await answers.next(4);
    if (replyVersion !== VERSION) throw failed(`unexpected protocol version ${replyVersion}`);
    if (code !== 0) throw failed(`unknown error ${REFUSALS[code as number] ?? `unknown code: ${code}`}`);
    // Skips the address from which the proxy connected.
    const bytes = type === ADDRESS.IPV4 ? 4 : type === ADDRESS.IPV6 ? 16 : (await answers.next(1))[0];
    await answers.next((bytes as number) + 2);
    answers.release();
  } catch (error) {
    answers.release();
    socket.destroy();
    throw error;
  }
}

/** Reads the proxy's answers by length. */
class Answers {
  readonly #socket: Socket;
  readonly #signal: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout;
  #held: Buffer = Buffer.alloc(0);
  #error: Error | undefined;
  #wake: () => void = () => {};

  constructor(socket: Socket, timeoutMs: number, signal: AbortSignal | undefined) {
    this.#socket = socket;
    this.#signal = signal;
    this.#timer = setTimeout(() => this.#fail(failed("i/o timeout")), timeoutMs);
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    socket.on("data", this.#onData).on("end", this.#onEnd).on("close", this.#onEnd);
    socket.resume();
    if (signal?.aborted) this.#onAbort();
  }

  async next(bytes: number): Promise<Buffer> {
    while (this.#held.byteLength < bytes) {
      if (this.#error !== undefined) throw this.#error;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const answer = this.#held.subarray(0, bytes);
    this.#held = this.#held.subarray(bytes);
    return answer;
  }

  /** Stops reading. The socket is paused, and bytes after the last answer are put back. */
  release(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#socket.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onEnd);
    this.#socket.pause();
    if (this.#held.byteLength > 0) this.#socket.unshift(this.#held);
  }

  readonly #onData = (chunk: Buffer): void => {
    this.#held = Buffer.concat([this.#held, chunk]);
    this.#wake();
  };
  readonly #onEnd = (): void => this.#fail(failed("EOF"));
  readonly #onAbort = (): void => this.#fail(abortedError());

  #fail(error: Error): void {
    this.#error ??= error;
    this.#wake();
  }
}

function failed(text: string): UpstreamError {
  return new UpstreamError("dial-failed", text, { hasConnected: true });
}

function addressOf(host: string): Buffer {
  if (isIPv4(host)) return Buffer.from([ADDRESS.IPV4, ...host.split(".").map(Number)]);
  if (isIPv6(host)) return Buffer.from([ADDRESS.IPV6, ...ipv6Bytes(host)]);
  return Buffer.concat([Uint8Array.of(ADDRESS.NAME), counted(host)]);
}

function ipv6Bytes(host: string): number[] {
  return ipv6Groups(host.replace(/%.*$/, "")).flatMap((group) => [group >>> 8, group & 0xff]);
}

function portOf(port: number): Uint8Array {
  return Uint8Array.of(port >>> 8, port & 0xff);
}

/** Prefixes the text with its length in one byte. Throws UpstreamError for a longer text. */
function counted(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.byteLength > 255) throw failed("a name or password of more than 255 bytes");
  return Buffer.concat([Uint8Array.of(bytes.byteLength), bytes]);
}
