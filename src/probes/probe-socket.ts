import { constants } from "node:crypto";
import { type ConnectOpts, connect, isIP, Socket, type SocketConstructorOpts } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import { poisonFreed } from "@sluice/client/internal/net/freed-memory";
import { goDialErrorText, joinHostPort } from "@sluice/client/internal/net/go-dial-error";
import { containEvents, settleFault } from "@sluice/client/internal/observability/faults";

export interface SocketTarget {
  /** A name or an IP address; IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
  /** The protocols to offer in TLS; absent: plain TCP. The certificate is not verified. */
  readonly alpn?: readonly string[] | undefined;
}

/** Receives a socket's events: at first its opener, then its protocol. */
interface SocketHearer {
  /** Connected; with TLS, after the handshake. */
  onOpen(): void;
  /** The chunk may be overwritten when the call returns. */
  onData(chunk: Buffer): void;
  /** No more bytes follow. May be called twice. */
  onEnd(): void;
  onError(error: Error): void;
}

const CONNECT_OPTIONS = {
  /** Gives a slow but healthy address enough time before the next address is tried. */
  autoSelectFamilyAttemptTimeout: 1_000,
};

/**
 * All plain sockets read into this buffer. Each read is processed, and copied if needed, before the
 * next one. Node would allocate 64 KiB for each small answer.
 */
const readMemory = Buffer.allocUnsafeSlow(64 * 1024);

/** Cached: parsing the system's authorities takes milliseconds, although nothing is verified here. */
let secureContext: SecureContext | undefined;

const NOBODY: SocketHearer = { onOpen: ignore, onData: ignore, onEnd: ignore, onError: ignore };

/**
 * One connection of a probe, plain or TLS, never proxied. Socket listeners are set once and
 * delegate to the current listener: replacing them costs as much as the probe's own I/O.
 */
export class ProbeSocket {
  /** Carries the bytes; with TLS, the TLS socket replaces it. */
  #socket: Socket;
  readonly #tcp: Socket;
  readonly #address: string;
  readonly #hasFixedAddress: boolean;
  #hearer: SocketHearer;
  /** `LOCAL->REMOTE`, once it is known. */
  #route: string | undefined;

  /** Starts to connect. `port` must be valid. */
  constructor(target: SocketTarget, hearer: SocketHearer) {
    const { host, port, alpn } = target;
    this.#address = joinHostPort(host, port);
    this.#hasFixedAddress = isIP(host) !== 0;
    this.#hearer = hearer;
    this.#tcp = alpn === undefined ? this.#connectPlain(host, port) : this.#connectTls(host, port, alpn);
    this.#socket = this.#tcp;
    this.#listenTo(this.#tcp);
  }

  /** Sets the receiver of all later events. */
  hear(hearer: SocketHearer): void {
    this.#hearer = hearer;
  }

  write(bytes: Uint8Array | string): void {
    this.#socket.write(bytes);
  }

  /** Bytes written that the kernel has not accepted yet. */
  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  /** The protocol that TLS negotiated; undefined for plain TCP, and for a server without ALPN. */
  get alpnProtocol(): string | undefined {
    return (this.#socket as Partial<TLSSocket>).alpnProtocol || undefined;
  }

  /** A one-line summary of the server's certificate; undefined for plain TCP. */
  get certificate(): string | undefined {
    const { subject, valid_to } = (this.#socket as Partial<TLSSocket>).getPeerCertificate?.() ?? {};
    if (subject === undefined) return undefined;
    const names = Object.entries(subject).map(([name, value]) => `${name}=${String(value)}`);
    return `${names.join(", ") || "(no subject)"}, valid until ${valid_to}`;
  }

  /** Go's text for an error of this socket. */
  textOf(error: Error): string {
    return brokenText(error, this.#route, this.#address);
  }

  /** Lets the process end although the socket is open. */
  unref(): void {
    this.#socket.unref();
  }

  /** Closes the socket; no further events. */
  destroy(): void {
    this.#hearer = NOBODY;
    this.#socket.destroy();
  }

  /** Resets the connection if all bytes were sent, so that this side keeps no TIME_WAIT. */
  reset(): void {
    if (this.unsentBytes === 0) this.#tcp.resetAndDestroy();
    this.destroy();
  }

  #listenTo(socket: Socket): void {
    containEvents(socket, "probe", this.#failed);
    socket
      .on("error", (error) => this.#hearer.onError(error))
      .on("end", this.#onEnd)
      .on("close", this.#onEnd);
  }

  readonly #onEnd = (): void => this.#hearer.onEnd();

  /** A listener's exception ends its own probe only. */
  readonly #failed = (error: unknown): void => {
    const hearer = this.#hearer;
    this.destroy();
    hearer.onError(error as Error);
  };

  #connectPlain(host: string, port: number): Socket {
    const socket = new PlainSocket((bytes) => {
      try {
        this.#hearer.onData(bytes);
      } catch (error) {
        settleFault("probe", error, this.#failed);
      }
    });
    socket.onBreak = () => this.#noteRoute();
    socket.connect({ host, port, ...CONNECT_OPTIONS });
    return socket.on("connect", () => {
      // A broken socket no longer knows which of the name's addresses it used.
      if (!this.#hasFixedAddress) this.#noteRoute();
      this.#hearer.onOpen();
    });
  }

  #connectTls(host: string, port: number, alpn: readonly string[]): Socket {
    const socket = connect({ host, port, ...CONNECT_OPTIONS }).setNoDelay();
    return socket.on("connect", () => {
      // A handshake may fail as well, and its error names both ends.
      this.#noteRoute();
      this.#socket = this.#secure(host, alpn);
    });
  }

  #secure(host: string, alpn: readonly string[]): Socket {
    secureContext ??= createSecureContext({
      minVersion: "TLSv1.2",
      ca: [],
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    });
    const secured = connectTls({
      socket: this.#tcp,
      secureContext,
      rejectUnauthorized: false,
      ALPNProtocols: [...alpn],
      ...(this.#hasFixedAddress || host === "" ? {} : { servername: host }),
    });
    this.#listenTo(secured);
    return secured
      .on("secureConnect", () => this.#hearer.onOpen())
      .on("data", (chunk) => this.#hearer.onData(chunk));
  }

  #noteRoute(): void {
    const { localAddress = "", localPort = 0, remoteAddress, remotePort = 0 } = this.#socket;
    // The peer may have reset the connection; then its address is no longer available.
    const remote = remoteAddress === undefined ? this.#address : joinHostPort(remoteAddress, remotePort);
    this.#route ??= `${joinHostPort(localAddress, localPort)}->${remote}`;
  }
}

/**
 * Reads into `readMemory`. Reports a break while the socket still knows its own address: noting
 * every socket's address would cost two system calls.
 */
class PlainSocket extends Socket {
  onBreak: () => void = ignore;

  constructor(onData: (chunk: Buffer) => void) {
    const options: SocketConstructorOpts & ConnectOpts & { readonly noDelay: boolean } = {
      // `connect` ignores this option.
      noDelay: true,
      onread: {
        buffer: readMemory,
        callback: (bytes) => {
          const chunk = readMemory.subarray(0, bytes);
          onData(chunk);
          poisonFreed(chunk);
          return true;
        },
      },
    };
    super(options);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (error !== null && error !== undefined) this.onBreak();
    super._destroy(error, callback);
  }
}

function ignore(): void {}

/**
 * Go's text for a broken socket: `read tcp LOCAL->REMOTE: read: connection reset by peer` once
 * connected, even for writes. Before that, `route` is undefined and the text names `address`.
 */
function brokenText(error: Error, route: string | undefined, address: string): string {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (route === undefined || (syscall !== "read" && syscall !== "write")) {
    return goDialErrorText(error, address);
  }
  const isReset = code === "ECONNRESET" || code === "EPIPE";
  const reason = isReset ? "connection reset by peer" : (code ?? error.message).toLowerCase();
  return `read tcp ${route}: read: ${reason}`;
}
