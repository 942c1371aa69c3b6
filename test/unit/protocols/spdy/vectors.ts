import type { SeenFrame } from "../../../support/scripted-spdy-peer.ts";

export interface FrameVector {
  readonly name: string;
  /** Where the bytes come from. */
  readonly source: string;
  /** Header, then payload. */
  readonly wire: string;
  readonly frames: readonly SeenFrame[];
  /** False where our encoder says the same in other bytes (header blocks), or does not say it. */
  readonly isEncodedSo: boolean;
}

const go = "Go's compress/zlib at the best compression, as written by moby/spdystream";
const draft = "SPDY/3 draft, section 2.6";

function streamType(streamId: number, type: string): SeenFrame {
  const headers = new Map([["streamtype", type]]);
  const rest = { associatedStreamId: 0, priority: 0, fin: false, unidirectional: false };
  return { type: "SYN_STREAM", streamId, ...rest, headers };
}

function emptyReply(streamId: number): SeenFrame {
  return { type: "SYN_REPLY", streamId, fin: false, headers: new Map() };
}

export const vectors: readonly FrameVector[] = [
  {
    name: "the SYN_STREAMs of kubectl exec",
    source: go,
    wire: [
      "8003000100000028 00000001000000000000 78f9e3c6a7c202a62346703a2b294a4dcc851625aca9a08006000000ffff",
      "8003000100000017 00000003000000000000 c22e555c02cc2e00000000ffff",
      "8003000100000019 00000005000000000000 c22a054ce729f9a52500000000ffff",
      "8003000100000014 00000007000000000000 c229073414000000ffff",
      "8003000100000017 00000009000000000000 c22e072c9a806901000000ffff",
    ].join(""),
    frames: [
      streamType(1, "error"),
      streamType(3, "stdin"),
      streamType(5, "stdout"),
      streamType(7, "stderr"),
      streamType(9, "resize"),
    ],
    isEncodedSo: false,
  },
  {
    name: "the empty SYN_REPLYs of a kubelet",
    source: go,
    wire: "8003000200000014 00000001 78f9e3c6a7c202a6230600000000ffff 800300020000000c 00000003 020100000000ffff",
    frames: [emptyReply(1), emptyReply(3)],
    isEncodedSo: false,
  },
  {
    name: "our own empty SYN_REPLYs",
    source: "RFC 1951 section 3.2.4 (stored blocks)",
    wire: [
      "8003000200000018 00000001 78f9e3c6a7c2 000400fbff00000000 000000ffff",
      "8003000200000012 00000003 000400fbff00000000 000000ffff",
    ].join(""),
    frames: [emptyReply(1), emptyReply(3)],
    isEncodedSo: true,
  },
  {
    name: "SYN_STREAM with every field",
    source: draft,
    wire: "8003000103000027 00000007 00000003 e000 78f9e3c6a7c2 000d00f2ff 00000001 00000001 61 00000000 000000ffff",
    frames: [
      {
        type: "SYN_STREAM",
        streamId: 7,
        associatedStreamId: 3,
        priority: 7,
        fin: true,
        unidirectional: true,
        headers: new Map([["a", ""]]),
      },
    ],
    isEncodedSo: true,
  },
  {
    name: "HEADERS with FIN",
    source: draft,
    wire: "8003000801000023 00000007 78f9e3c6a7c2 000f00f0ff 00000001 00000001 61 00000002 0078 000000ffff",
    frames: [{ type: "HEADERS", streamId: 7, fin: true, headers: new Map([["a", "\0x"]]) }],
    isEncodedSo: true,
  },
  {
    name: "PING",
    source: go,
    wire: "8003000600000004 00000001",
    frames: [{ type: "PING", id: 1 }],
    isEncodedSo: true,
  },
  {
    name: "PING with the highest id",
    source: draft,
    wire: "8003000600000004 ffffffff",
    frames: [{ type: "PING", id: 0xffff_ffff }],
    isEncodedSo: true,
  },
  {
    name: "GOAWAY",
    source: go,
    wire: "8003000700000008 00000000 00000000",
    frames: [{ type: "GOAWAY", lastGoodStreamId: 0, status: 0 }],
    isEncodedSo: true,
  },
  {
    name: "RST_STREAM CANCEL",
    source: go,
    wire: "8003000300000008 00000005 00000005",
    frames: [{ type: "RST_STREAM", streamId: 5, status: 5 }],
    isEncodedSo: true,
  },
  {
    name: "RST_STREAM with flags, which are ignored",
    source: "moby/spdystream 0.5.1 spdy/read.go",
    wire: "8003000301000008 80000005 00000063",
    frames: [{ type: "RST_STREAM", streamId: 5, status: 0x63 }],
    isEncodedSo: false,
  },
  {
    name: "SETTINGS",
    source: draft,
    wire: "8003000400000014 00000002 01000004 00000064 00000007 00010000",
    frames: [
      {
        type: "SETTINGS",
        entries: [
          { flags: 1, id: 4, value: 100 },
          { flags: 0, id: 7, value: 65536 },
        ],
      },
    ],
    isEncodedSo: true,
  },
  {
    name: "WINDOW_UPDATE of the session",
    source: "SPDY/3.1, section 2.6.8",
    wire: "8003000900000008 00000000 00010000",
    frames: [{ type: "WINDOW_UPDATE", streamId: 0, deltaBytes: 65536 }],
    isEncodedSo: true,
  },
  {
    name: "a control frame of another version",
    source: "moby/spdystream 0.5.1 spdy/read.go: written as 3, not checked",
    wire: "8002000600000004 00000001",
    frames: [{ type: "PING", id: 1 }],
    isEncodedSo: false,
  },
  {
    name: "DATA with FIN and without payload",
    source: go,
    wire: "00000003 01000000",
    frames: [{ type: "DATA", streamId: 3, text: "", fin: true }],
    isEncodedSo: true,
  },
  {
    name: "DATA",
    source: draft,
    wire: "7fffffff 00000003 616263",
    frames: [{ type: "DATA", streamId: 0x7fff_ffff, text: "abc", fin: false }],
    isEncodedSo: true,
  },
  {
    name: "empty DATA without FIN says nothing",
    source: draft,
    wire: "00000003 00000000 00000001 01000001 78",
    frames: [{ type: "DATA", streamId: 1, text: "x", fin: true }],
    isEncodedSo: false,
  },
];
