import { type ConnectOpts, connect, isIP, Socket, type SocketConstructorOpts } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext, type TLSSocket } from "node:tls";
import { poisonFreed } from "../net/freed-memory.ts";
import { joinHostPort } from "../net/go-dial-error.ts";
import { containEvents, settleFault } from "../observability/faults.ts";
import { brokenText } from "./exchange-error.ts";

export interface SocketTarget {
  /** A name or an IP address, the latter without brackets. */
  readonly host: string;
  readonly port: number;
  /** The protocols that are offered in TLS; absent: plain TCP. The certificate is not verified. */
  readonly alpn?: readonly string[] | undefined;
}

/** The listener of a socket's events: first its opener, then its protocol. */
export interface SocketHearer {
  /** Connected, in TLS with a handshake. */
  onOpen(): void;
  /** The chunk may be overwritten when the call returns. */
  onData(chunk: Buffer): void;
  /** No more comes. May be said twice. */
  onEnd(): void;
  onError(error: Error): void;
}

const CONNECT_OPTIONS = {
  /** Long enough for a slow address, so that a healthy one does not lose against an unreachable one. */
  autoSelectFamilyAttemptTimeout: 1_000,
};

/**
 * What all plain sockets are read into: a read is looked at, and what is kept of it copied, before the next one. Node would take 64 KiB
 * anew for each answer of some hundred bytes.
 */
const readMemory = Buffer.allocUnsafeSlow(64 * 1024);

/** Parsing the system's authorities takes milliseconds, and nothing is verified by them here. */
let secureContext: SecureContext | undefined;

const NOBODY: SocketHearer = { onOpen: ignore, onData: ignore, onEnd: ignore, onError: ignore };

/**
 * One connection of a probe, plain or TLS, never proxied. Socket listeners are set once and delegate
 * to the current listener: replacing them costs as much as the probe's own I/O.
 */
export class ProbeSocket {
  /** What carries the bytes; TLS replaces it. */
  #socket: Socket;
  readonly #tcp: Socket;
  readonly #address: string;
  readonly #hasFixedAddress: boolean;
  #hearer: SocketHearer;
  /** `LOCAL->REMOTE`, once it is known. */
  #route: string | undefined;

  /** Begins to connect. `port` is one that exists. */
  constructor(target: SocketTarget, hearer: SocketHearer) {
    const { host, port, alpn } = target;
    this.#address = joinHostPort(host, port);
    this.#hasFixedAddress = isIP(host) !== 0;
    this.#hearer = hearer;
    this.#tcp = alpn === undefined ? this.#connectPlain(host, port) : this.#connectTls(host, port, alpn);
    this.#socket = this.#tcp;
    this.#listenTo(this.#tcp);
  }

  /** From now on that one is told. */
  hear(hearer: SocketHearer): void {
    this.#hearer = hearer;
  }

  write(bytes: Uint8Array | string): void {
    this.#socket.write(bytes);
  }

  /** Written, and not yet taken by the kernel. */
  get unsentBytes(): number {
    return this.#socket.writableLength;
  }

  /** What TLS agreed on; undefined for plain TCP, and where the server knows no ALPN. */
  get alpnProtocol(): string | undefined {
    return (this.#socket as Partial<TLSSocket>).alpnProtocol || undefined;
  }

  /** The server's certificate in a line; undefined for plain TCP. */
  get certificate(): string | undefined {
    const { subject, valid_to } = (this.#socket as Partial<TLSSocket>).getPeerCertificate?.() ?? {};
    if (subject === undefined) return undefined;
    const names = Object.entries(subject).map(([name, value]) => `${name}=${String(value)}`);
    return `${names.join(", ") || "(no subject)"}, valid until ${valid_to}`;
  }

  /** What Go says of an error of this socket. */
  textOf(error: Error): string {
    return brokenText(error, this.#route, this.#address);
  }

  /** It no longer keeps the process alive. */
  unref(): void {
    this.#socket.unref();
  }

  /** Closes it; no further events. */
  destroy(): void {
    this.#hearer = NOBODY;
    this.#socket.destroy();
  }

  /** The same by RST, where all that was written is sent: this side keeps no TIME_WAIT. */
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

  /** An exception in the listener: that probe ends, and no other. */
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
      // Which of a name's addresses it is, a socket that broke no longer tells.
      if (!this.#hasFixedAddress) this.#noteRoute();
      this.#hearer.onOpen();
    });
  }

  #connectTls(host: string, port: number, alpn: readonly string[]): Socket {
    const socket = connect({ host, port, ...CONNECT_OPTIONS }).setNoDelay();
    return socket.on("connect", () => {
      // A handshake may break too, and then names both ends.
      this.#noteRoute();
      this.#socket = this.#secure(host, alpn);
    });
  }

  #secure(host: string, alpn: readonly string[]): Socket {
    secureContext ??= createSecureContext({ minVersion: "TLSv1.2", ca: [] });
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
    // A peer that has reset the connection by now has no address any more.
    const remote = remoteAddress === undefined ? this.#address : joinHostPort(remoteAddress, remotePort);
    this.#route ??= `${joinHostPort(localAddress, localPort)}->${remote}`;
  }
}

/** Read into `readMemory`; tells when it breaks, as long as it still knows its own address: asking each one would be two system calls. */
class PlainSocket extends Socket {
  onBreak: () => void = ignore;

  constructor(onData: (chunk: Buffer) => void) {
    const options: SocketConstructorOpts & ConnectOpts & { readonly noDelay: boolean } = {
      // Node's `connect` does not look at it.
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
