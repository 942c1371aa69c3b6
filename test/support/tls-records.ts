import { createCipheriv, createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";

export const TYPE = { alert: 21, handshake: 22, data: 23 } as const;
const MAX_RECORD_BYTES = 16_384;

/** One record, as it is before keys are agreed on. */
export function plainRecord(type: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(type, 3, 1, content.length >> 8, content.length & 0xff), content]);
}

/** Bytes behind their length, of so many bytes. */
function measured(lengthBytes: number, ...parts: Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const length = Buffer.alloc(lengthBytes);
  length.writeUIntBE(body.length % 2 ** (8 * lengthBytes), 0, lengthBytes);
  return Buffer.concat([length, body]);
}

/** A ClientHello's extension. */
export function extension(type: number, content: Uint8Array): Buffer {
  return Buffer.concat([Buffer.of(type >> 8, type & 0xff), measured(2, content)]);
}

export function serverName(name: Uint8Array): Buffer {
  return extension(0, measured(2, Buffer.of(0), measured(2, name)));
}

/** A ClientHello of TLS 1.3 and 1.2 in its records, with these extensions besides those it needs. */
export function clientHello(...extensions: Uint8Array[]): Buffer {
  const hello = Buffer.concat([
    Buffer.of(3, 3),
    randomBytes(32),
    measured(1),
    measured(2, Buffer.from("130213011303c02bc02fc02cc030", "hex")),
    measured(1, Buffer.of(0)),
    measured(
      2,
      extension(10, measured(2, Buffer.from("001d0017", "hex"))),
      extension(13, measured(2, Buffer.from("040308040401", "hex"))),
      extension(43, measured(1, Buffer.from("03040303", "hex"))),
      extension(51, measured(2, Buffer.from("001d", "hex"), measured(2, randomBytes(32)))),
      ...extensions,
    ),
  ]);
  const message = Buffer.concat([Buffer.of(1), measured(3, hello)]);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += MAX_RECORD_BYTES)
    records.push(plainRecord(TYPE.handshake, message.subarray(at, at + MAX_RECORD_BYTES)));
  return Buffer.concat(records);
}

/** RFC 8446 section 7.1, for lengths of one hash at most. */
function expandLabel(secret: Uint8Array, label: string, bytes: number): Buffer {
  const info = Buffer.concat([Buffer.of(0, bytes), measured(1, Buffer.from(`tls13 ${label}`)), measured(1)]);
  return createHmac("sha384", secret).update(info).update(Buffer.of(1)).digest().subarray(0, bytes);
}

/** A client whose records are written by the test, under the keys of its TLS 1.3 handshake. */
export class RecordClient {
  readonly tls: TLSSocket;
  readonly socket: Socket;
  #secret: Buffer;
  #key: Buffer;
  #iv: Buffer;
  #sequence = 0n;

  private constructor(tls: TLSSocket, socket: Socket, secret: Buffer) {
    this.tls = tls;
    this.socket = socket;
    this.#secret = secret;
    this.#key = expandLabel(secret, "key", 32);
    this.#iv = expandLabel(secret, "iv", 12);
  }

  static async open(port: number, options: ConnectionOptions = {}): Promise<RecordClient> {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    const way = new Duplex({
      read: () => {},
      write: (bytes: Buffer, _encoding, done) => void socket.write(bytes, () => done()),
    });
    socket.on("data", (bytes: Buffer) => void way.push(bytes)).once("close", () => way.destroy());
    const tls = connectTls({
      socket: way,
      rejectUnauthorized: false,
      ciphers: "TLS_AES_256_GCM_SHA384",
      minVersion: "TLSv1.3",
      ...options,
    });
    let secret = "";
    tls.on("keylog", (line: Buffer) => {
      const [label, , value = ""] = String(line).trim().split(" ");
      if (label === "CLIENT_TRAFFIC_SECRET_0") secret = value;
    });
    tls.on("error", () => {}).resume();
    await once(tls, "secureConnect");
    return new RecordClient(tls, socket, Buffer.from(secret, "hex"));
  }

  /** The record of this content. */
  record(type: number, content: Uint8Array): Buffer {
    const inner = Buffer.concat([content, Buffer.of(type)]);
    const head = Buffer.concat([Buffer.of(TYPE.data, 3, 3), measured(2, Buffer.alloc(0))]);
    head.writeUInt16BE(inner.length + 16, 3);
    const nonce = Buffer.from(this.#iv);
    nonce.writeBigUInt64BE(nonce.readBigUInt64BE(4) ^ this.#sequence, 4);
    this.#sequence += 1n;
    const cipher = createCipheriv("aes-256-gcm", this.#key, nonce);
    cipher.setAAD(head);
    return Buffer.concat([head, cipher.update(inner), cipher.final(), cipher.getAuthTag()]);
  }

  /** A KeyUpdate; later records have the next keys. */
  keyUpdate(isRequesting: boolean): Buffer {
    const record = this.record(TYPE.handshake, Buffer.of(24, 0, 0, 1, isRequesting ? 1 : 0));
    this.#secret = expandLabel(this.#secret, "traffic upd", 48);
    this.#key = expandLabel(this.#secret, "key", 32);
    this.#iv = expandLabel(this.#secret, "iv", 12);
    this.#sequence = 0n;
    return record;
  }

  /** Writes these bytes if the connection is still open, and yields to other work. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.socket.destroyed) return;
    await new Promise<void>((resolve) => this.socket.write(bytes, () => setImmediate(resolve)));
  }
}
