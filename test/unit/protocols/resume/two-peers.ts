import { ResumeSession } from "../../../../protocols/resume/index.ts";

/** One end of a session, with an application that reads when it is told to. */
export class Peer {
  readonly session: ResumeSession;
  readonly delivered: number[] = [];
  readonly aborts: string[] = [];
  /** What the application would like to write and could not yet. */
  unwritten: Uint8Array = new Uint8Array(0);
  wantsEnd = false;
  hasEnded = false;
  hasFinished = false;
  undelivered = 0;
  largestUnconsumed = 0;
  outgoing: Uint8Array[] | undefined;

  constructor(windowBytes: number) {
    this.session = new ResumeSession(windowBytes, {
      send: (header, payload) => this.outgoing?.push(Uint8Array.from([...header, ...(payload ?? [])])),
      onData: (part) => {
        for (const byte of part) this.delivered.push(byte);
        this.undelivered += part.byteLength;
        this.largestUnconsumed = Math.max(this.largestUnconsumed, this.undelivered);
      },
      onEnd: () => {
        this.hasEnded = true;
      },
      onRoom: () => this.pump(),
      onFinished: () => {
        this.hasFinished = true;
      },
      onAbort: (_code, reason) => this.aborts.push(reason),
    });
  }

  write(bytes: Uint8Array): void {
    this.unwritten = Uint8Array.from([...this.unwritten, ...bytes]);
    this.pump();
  }

  end(): void {
    this.wantsEnd = true;
    this.pump();
  }

  read(): void {
    const bytes = this.undelivered;
    this.undelivered = 0;
    this.session.consumed(bytes);
  }

  pump(): void {
    const taken = this.session.write(this.unwritten);
    this.unwritten = this.unwritten.subarray(taken);
    if (this.wantsEnd && this.unwritten.byteLength === 0) this.session.finish();
  }
}

/** A client and a server, and at most one connection between them; messages wait on it until they are moved. */
export class TwoPeers {
  readonly client: Peer;
  readonly server: Peer;
  #toServer: Uint8Array[] = [];
  #toClient: Uint8Array[] = [];

  constructor(windowBytes: number) {
    this.client = new Peer(windowBytes);
    this.server = new Peer(windowBytes);
    this.connect();
  }

  /** Both agree on a new connection; what the old one still carried is lost. */
  connect(): void {
    this.cut();
    this.#toServer = [];
    this.#toClient = [];
    const clientReceived = this.client.session.received;
    if (!this.server.session.canAttach(clientReceived)) throw new Error("the server refuses");
    const serverReceived = this.server.session.received;
    this.server.outgoing = this.#toClient;
    this.server.session.attach(clientReceived);
    if (!this.client.session.canAttach(serverReceived)) throw new Error("the client refuses");
    this.client.outgoing = this.#toServer;
    this.client.session.attach(serverReceived);
  }

  /** The server took the new connection, and its answer never reached the client. */
  connectInVain(): void {
    this.cut();
    this.server.outgoing = [];
    this.server.session.attach(this.client.session.received);
    this.cut();
  }

  cut(): void {
    this.client.session.detach();
    this.server.session.detach();
    this.client.outgoing = undefined;
    this.server.outgoing = undefined;
  }

  /** Moves so many messages in one direction, the last of them only in part. */
  move(toServer: boolean, messages: number, lastBytes: number, partBytes: number): void {
    if (this.client.outgoing === undefined) return;
    const queue = toServer ? this.#toServer : this.#toClient;
    const { session } = toServer ? this.server : this.client;
    for (let moved = 0; moved < messages && queue.length > 0; moved++) {
      const message = queue.shift() as Uint8Array;
      const isCut = moved === messages - 1 && lastBytes < message.byteLength;
      const end = isCut ? lastBytes : message.byteLength;
      for (let at = 0; at < end; at += partBytes) {
        const to = Math.min(at + partBytes, end);
        session.receive(message.slice(at, to), at === 0, to === message.byteLength);
      }
      // A connection that lost a part of a message is of no use any more.
      if (isCut) {
        this.cut();
        return;
      }
    }
  }

  /** Moves everything, with applications that read, until nothing moves any more. */
  settle(): void {
    for (let quiet = 0; quiet < 3; ) {
      const before = this.client.delivered.length + this.server.delivered.length;
      this.move(true, 1_000, Number.POSITIVE_INFINITY, 1_000);
      this.move(false, 1_000, Number.POSITIVE_INFINITY, 1_000);
      for (const peer of [this.client, this.server]) {
        peer.read();
        peer.session.tick();
        peer.pump();
      }
      quiet = this.client.delivered.length + this.server.delivered.length === before ? quiet + 1 : 0;
    }
  }
}
