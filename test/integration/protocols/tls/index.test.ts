import { Duplex } from "node:stream";
import { connect } from "node:tls";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ClientHelloReader } from "../../../../protocols/tls/index.ts";

const NAMELESS = { serverName: undefined };

const readClientHello = (bytes: Uint8Array) => new ClientHelloReader().push(bytes);

/** What OpenSSL writes first. */
function helloOf(options: object): Promise<Buffer> {
  return new Promise((resolve) => {
    const wire = new Duplex({ read() {}, write: (chunk: Buffer) => resolve(chunk) });
    connect({ socket: wire, ...options });
  });
}

/** The same handshake message in records of so many bytes. */
function inRecords(hello: Buffer, bytes: number): Buffer {
  const message = hello.subarray(5);
  const records: Buffer[] = [];
  for (let offset = 0; offset < message.byteLength; offset += bytes) {
    const fragment = message.subarray(offset, offset + bytes);
    records.push(Buffer.from([22, 3, 1, fragment.byteLength >> 8, fragment.byteLength & 0xff]), fragment);
  }
  return Buffer.concat(records);
}

describe("the server's name in a ClientHello", () => {
  it.each([
    ["TLS 1.3", { servername: "a.example.com" }],
    ["TLS 1.2", { servername: "a.example.com", maxVersion: "TLSv1.2", ALPNProtocols: ["h2"] }],
  ])("is read from OpenSSL's for %s, at every prefix either so or not yet", async (_version, options) => {
    const hello = await helloOf(options);
    expect(readClientHello(hello)).toEqual({ serverName: "a.example.com" });
    let isDecided = false;
    for (let length = 0; length <= hello.byteLength; length++) {
      const read = readClientHello(hello.subarray(0, length));
      if (isDecided) expect(read).toEqual({ serverName: "a.example.com" });
      isDecided = read !== undefined;
      if (isDecided) expect(read).toEqual({ serverName: "a.example.com" });
    }
    expect(isDecided).toBe(true);
  });

  it("is read from one byte at a time", async () => {
    const reader = new ClientHelloReader();
    const hello = await helloOf({ servername: "a.example.com" });
    const answers = Array.from(inRecords(hello, 100), (byte) => reader.push(Uint8Array.of(byte)));
    expect(answers.find((answer) => answer !== undefined)).toEqual({ serverName: "a.example.com" });
  });

  it.each([
    ["ChangeCipherSpec", [20, 3, 3, 0, 1, 1]],
    ["early data", [23, 3, 3, 0, 2, 9, 9]],
    ["the head of a record", [20, 3]],
  ])("is read where %s comes with it in one read", async (_what, more) => {
    const hello = await helloOf({ servername: "a.example.com" });
    expect(readClientHello(Buffer.concat([hello, Buffer.from(more)]))).toEqual({
      serverName: "a.example.com",
    });
  });

  it("is read across records of any length", async () => {
    const hello = await helloOf({ servername: "a.example.com" });
    for (const bytes of [1, 2, 3, 38, 100]) {
      expect(readClientHello(inRecords(hello, bytes))).toEqual({ serverName: "a.example.com" });
    }
  });

  it.each([
    "TLSv1.3",
    "TLSv1.2",
  ])("is none where none is named (%s), which is known at the last extension", async (maxVersion) => {
    const hello = await helloOf({ maxVersion });
    const prefixes = Array.from({ length: hello.byteLength }, (_, index) => hello.subarray(0, index + 1));
    const decided = prefixes.filter((prefix) => readClientHello(prefix) !== undefined);
    for (const prefix of decided) expect(readClientHello(prefix)).toEqual(NAMELESS);
    // All from the one on that ends with the last extension's length: a post-quantum key share makes that more than half of the message.
    const known = hello.byteLength - decided.length + 1;
    expect(decided[0]?.byteLength).toBe(known);
    expect(hello.readUInt16BE(known - 2)).toBe(hello.byteLength - known);
  });

  it.each([
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["an alert", Buffer.from([21, 3, 3, 0, 2, 2, 40])],
    ["a ServerHello", Buffer.from([22, 3, 3, 0, 4, 2, 0, 0, 0])],
    ["a message that is shorter than what it holds", Buffer.from([22, 3, 3, 0, 4, 1, 0, 0, 0])],
    [
      "another record in between",
      Buffer.concat([Buffer.from([22, 3, 3, 0, 1, 1]), Buffer.from([21, 3, 3, 0, 2, 2, 40])]),
    ],
  ])("is none in %s", (_what, bytes) => {
    expect(readClientHello(bytes)).toEqual(NAMELESS);
  });

  it.each([
    ["of no length", []],
    ["of another type", [0, 4, 1, 0, 1, 97]],
    ["empty", [0, 3, 0, 0, 0]],
    ["longer than a host name can be", [1, 3, 0, 1, 0, ...new Array(256).fill(97)]],
  ])("is none where the extension is %s", (_what, data) => {
    expect(readClientHello(helloWith(data))).toEqual(NAMELESS);
    expect(readClientHello(helloWith([0, 4, 0, 0, 1, 97]))).toEqual({ serverName: "a" });
  });

  it("is never a matter of what a client makes up", async () => {
    const hello = await helloOf({ servername: "a.example.com" });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(hello.byteLength - 1), fc.nat(255)), { maxLength: 8 }),
        fc.uint8Array({ maxLength: 64 }),
        (changes, more) => {
          const bytes = Buffer.concat([hello, more]);
          for (const [place, value] of changes) bytes[place] = value;
          readClientHello(bytes);
          readClientHello(more);
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

function helloWith(data: readonly number[]): Buffer {
  const uint16 = (value: number): number[] => [value >> 8, value & 0xff];
  const extension = [0, 0, ...uint16(data.length), ...data];
  const body = [
    3,
    3,
    ...new Array(32).fill(7),
    0,
    0,
    2,
    19,
    1,
    1,
    0,
    ...uint16(extension.length),
    ...extension,
  ];
  const message = [1, 0, ...uint16(body.length), ...body];
  return Buffer.from([22, 3, 1, ...uint16(message.length), ...message]);
}
