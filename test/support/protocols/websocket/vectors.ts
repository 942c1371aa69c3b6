import type { WebSocketLimits, WebSocketRole } from "../../../../protocols/websocket/index.ts";
import type { Event } from "./recorder.ts";

export interface Vector {
  readonly name: string;
  readonly source: string;
  /** Our role: a client reads unmasked frames. */
  readonly role: WebSocketRole;
  readonly wire: string;
  readonly events: readonly Event[];
  /** The limits that these bytes just meet. With any of them one lower, the bytes are refused. */
  readonly meets?: Partial<WebSocketLimits>;
}

const RFC = "RFC 6455 section 5.7";

export const vectors: readonly Vector[] = [
  {
    name: "unmasked text",
    source: RFC,
    role: "client",
    wire: "81 05 48656c6c6f",
    events: [{ type: "text", hex: "48656c6c6f" }],
    meets: { maxFrameBytes: 5, maxMessageBytes: 5, maxFragments: 1 },
  },
  {
    name: "masked text",
    source: RFC,
    role: "server",
    wire: "81 85 37fa213d 7f9f4d5158",
    events: [{ type: "text", hex: "48656c6c6f" }],
    meets: { maxFrameBytes: 5, maxMessageBytes: 5, maxFragments: 1 },
  },
  {
    name: "fragmented unmasked text",
    source: RFC,
    role: "client",
    wire: "01 03 48656c 80 02 6c6f",
    events: [{ type: "text", hex: "48656c6c6f" }],
    meets: { maxFrameBytes: 3, maxMessageBytes: 5, maxFragments: 2 },
  },
  {
    name: "unmasked ping",
    source: RFC,
    role: "client",
    wire: "89 05 48656c6c6f",
    events: [{ type: "ping", hex: "48656c6c6f" }],
  },
  {
    name: "masked pong",
    source: RFC,
    role: "server",
    wire: "8a 85 37fa213d 7f9f4d5158",
    events: [{ type: "pong", hex: "48656c6c6f" }],
  },
  {
    name: "256 bytes of binary",
    source: RFC,
    role: "client",
    wire: "82 7e 0100 ab*256",
    events: [{ type: "binary", hex: "ab".repeat(256) }],
    meets: { maxFrameBytes: 256, maxMessageBytes: 256, maxFragments: 1 },
  },
  {
    name: "64 KiB of binary",
    source: RFC,
    role: "client",
    wire: "82 7f 0000000000010000 cd*65536",
    events: [{ type: "binary", hex: "cd".repeat(65536) }],
    meets: { maxFrameBytes: 65536, maxMessageBytes: 65536, maxFragments: 1 },
  },
  {
    name: "the longest 7-bit and the shortest 16-bit length",
    source: "RFC 6455 section 5.2",
    role: "client",
    wire: "82 7d 01*125 82 7e 007e 02*126",
    events: [
      { type: "binary", hex: "01".repeat(125) },
      { type: "binary", hex: "02".repeat(126) },
    ],
    meets: { maxFrameBytes: 126, maxMessageBytes: 126 },
  },
  {
    name: "a length that is not minimal",
    source: "accepted as by ws 8.23 and golang.org/x/net, although RFC 6455 section 5.2 forbids sending it",
    role: "client",
    wire: "82 7e 0001 aa 82 7f 0000000000000002 bbcc",
    events: [
      { type: "binary", hex: "aa" },
      { type: "binary", hex: "bbcc" },
    ],
    meets: { maxFrameBytes: 2, maxMessageBytes: 2 },
  },
  {
    name: "control frames between fragments",
    source: "RFC 6455 section 5.4",
    role: "server",
    wire: "02 82 01020304 abcf 89 81 00000001 70 00 80 00000000 8a 80 ffffffff 80 81 ff000000 01",
    events: [
      { type: "ping", hex: "70" },
      { type: "pong", hex: "" },
      { type: "binary", hex: "aacdfe" },
    ],
    meets: { maxFrameBytes: 2, maxMessageBytes: 3, maxFragments: 3 },
  },
  {
    name: "empty messages, whole and in fragments",
    source: "RFC 6455 section 5.6",
    role: "client",
    wire: "82 00 01 00 00 00 80 00",
    events: [
      { type: "binary", hex: "" },
      { type: "text", hex: "" },
    ],
    meets: { maxFragments: 3 },
  },
  {
    name: "text that is not UTF-8",
    source: "relayed as it is: only close reasons are read here",
    role: "client",
    wire: "81 02 c328",
    events: [{ type: "text", hex: "c328" }],
  },
  {
    name: "the longest control payload",
    source: "RFC 6455 section 5.5",
    role: "client",
    wire: "89 7d 55*125",
    events: [{ type: "ping", hex: "55".repeat(125) }],
  },
  {
    name: "close without a body",
    source: "RFC 6455 section 7.1.5",
    role: "client",
    wire: "88 00",
    events: [{ type: "close", code: 1005, reason: "" }],
  },
  {
    name: "masked close with a reason in UTF-8",
    source: "RFC 6455 section 5.5.1",
    role: "server",
    wire: "88 85 00000000 03e8 e282ac",
    events: [{ type: "close", code: 1000, reason: "€" }],
  },
  {
    name: "a close within a message",
    source: "RFC 6455 section 5.4",
    role: "client",
    wire: "02 01 aa 88 02 03e9",
    events: [{ type: "close", code: 1001, reason: "" }],
  },
];

/** Bytes that must be refused, and their close code. `ws` 8.23 must judge each of them alike. */
export interface Refusal {
  readonly name: string;
  readonly role: WebSocketRole;
  readonly wire: string;
  readonly closeCode: number;
}

function inClient(name: string, wire: string, closeCode = 1002): Refusal {
  return { name, role: "client", wire, closeCode };
}

export const refusals: readonly Refusal[] = [
  inClient("RSV1", "c1 00"),
  inClient("RSV2", "a1 00"),
  inClient("RSV3", "91 00"),
  inClient("RSV1 on a control frame", "c9 00"),
  ...[3, 4, 5, 6, 7].map((opcode) => inClient(`reserved opcode ${opcode}`, `8${opcode} 00`)),
  ..."bcdef".split("").map((opcode) => inClient(`reserved opcode 0x${opcode}`, `8${opcode} 00`)),
  inClient("a continuation of nothing", "80 01 00"),
  inClient("a continuation after a whole message", "82 01 00 80 01 00"),
  inClient("binary within a message", "01 01 61 82 01 00"),
  inClient("text within a message", "02 01 61 81 01 61"),
  inClient("a fragmented ping", "09 00"),
  inClient("a fragmented close", "08 00"),
  inClient("a ping of 126 bytes", "89 7e 007e 00*126"),
  inClient("a close with a 64-bit length", "88 7f 0000000000000002 03e8"),
  inClient("a close body of one byte", "88 01 03"),
  inClient("a masked frame from a server", "81 85 37fa213d 7f9f4d5158"),
  { name: "an unmasked frame from a client", role: "server", wire: "81 05 48656c6c6f", closeCode: 1002 },
  { name: "an unmasked close from a client", role: "server", wire: "88 02 03e8", closeCode: 1002 },
  ...[0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535].map((code) =>
    inClient(`close code ${code}`, `88 02 ${code.toString(16).padStart(4, "0")}`),
  ),
  inClient("a close reason that is not UTF-8", "88 04 03e8 c328", 1007),
  inClient("a close reason that ends within a character", "88 04 03e8 e282", 1007),
  inClient("a close reason with a surrogate", "88 05 03e8 eda080", 1007),
  inClient("the top bit of a 64-bit length", "82 7f 8000000000000000", 1009),
  inClient("a length of 2^53", "82 7f 0020000000000000", 1009),
  inClient("the largest length", "82 7f ffffffffffffffff", 1009),
];
