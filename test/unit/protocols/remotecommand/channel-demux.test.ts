import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../../../protocols/protocol-error.ts";
import {
  ChannelDemux,
  channelByte,
  encodeBase64,
  type RemoteCommandVersion,
  specOf,
} from "../../../../protocols/remotecommand/index.ts";

type Event = readonly [channel: number, payload: string] | "close 0" | `close ${number}`;

/** Feeds one message in the given parts; adjacent data of the one message is joined so that cuts do not show. */
function demux(version: RemoteCommandVersion, parts: readonly Uint8Array[]): Event[] {
  const events: Event[] = [];
  let payload: number[] = [];
  const channels = new ChannelDemux(specOf(version), {
    onChannelData(channel, part, isLast) {
      payload.push(...part);
      if (!isLast) return;
      events.push([channel, Buffer.from(payload).toString("latin1")]);
      payload = [];
    },
    onChannelClose: (channel) => events.push(`close ${channel}`),
  });
  parts.forEach((part, index) => {
    channels.push(part, index === 0, index === parts.length - 1);
  });
  return events;
}

const rows: [name: string, version: RemoteCommandVersion, message: string, events: Event[]][] = [
  ["data", "v4.channel.k8s.io", "\x00hello", [[0, "hello"]]],
  ["a channel alone", "v4.channel.k8s.io", "\x01", [[1, ""]]],
  ["an empty message", "v4.channel.k8s.io", "", []],
  ["an unknown channel", "v4.channel.k8s.io", "\x09x", [[9, "x"]]],
  ["CLOSE of stdin", "v5.channel.k8s.io", "\xff\x00", ["close 0"]],
  ["CLOSE of resize", "v5.channel.k8s.io", "\xff\x04", ["close 4"]],
  ["CLOSE where there is none", "v4.channel.k8s.io", "\xff\x00", [[255, "\x00"]]],
  ["base64", "v4.base64.channel.k8s.io", "0aGVsbG8=", [[0, "hello"]]],
  ["base64 with two paddings", "base64.channel.k8s.io", "2Zg==", [[2, "f"]]],
  ["base64 with a line break", "base64.channel.k8s.io", "4Zm9v\nYmFy", [[4, "foobar"]]],
  ["base64 of nothing", "base64.channel.k8s.io", "1", [[1, ""]]],
];

describe("ChannelDemux", () => {
  for (const [name, version, message, events] of rows) {
    const bytes = Buffer.from(message, "latin1");
    it(`reads ${name}, cut at any byte`, () => {
      expect(demux(version, [bytes])).toEqual(events);
      for (let at = 0; at <= bytes.length; at++) {
        expect(demux(version, [bytes.subarray(0, at), bytes.subarray(at)]), `cut at ${at}`).toEqual(events);
      }
    });
  }

  const wrong: [name: string, version: RemoteCommandVersion, message: string][] = [
    ["CLOSE without a channel", "v5.channel.k8s.io", "\xff"],
    ["CLOSE of three bytes", "v5.channel.k8s.io", "\xff\x00\x00"],
    ["CLOSE of channel 5", "v5.channel.k8s.io", "\xff\x05"],
    ["a character that is not base64", "base64.channel.k8s.io", "0a*Vs"],
    ["an incomplete base64 group", "base64.channel.k8s.io", "0aGV"],
    ["base64 after its padding", "base64.channel.k8s.io", "0Zg==Zg=="],
    ["padding in the wrong place", "base64.channel.k8s.io", "0Z==="],
  ];
  for (const [name, version, message] of wrong) {
    const bytes = Buffer.from(message, "latin1");
    it(`refuses ${name}, cut at any byte`, () => {
      for (let at = 0; at <= bytes.length; at++) {
        expect(() => demux(version, [bytes.subarray(0, at), bytes.subarray(at)])).toThrow(ProtocolError);
      }
    });
  }

  it("hands on the pushed bytes themselves", () => {
    const message = Uint8Array.of(0, 1, 2, 3);
    let seen: Uint8Array | undefined;
    const channels = new ChannelDemux(specOf("v5.channel.k8s.io"), {
      onChannelData: (_channel, part) => {
        seen = part;
      },
      onChannelClose: () => {},
    });
    channels.push(message, true, true);
    expect(seen?.buffer).toBe(message.buffer);
  });

  it("gives what was encoded, for any payload, channel and cut", () => {
    const versions = fc.constantFrom<RemoteCommandVersion>("v4.channel.k8s.io", "v4.base64.channel.k8s.io");
    fc.assert(
      fc.property(
        versions,
        fc.nat(4),
        fc.uint8Array({ maxLength: 200 }),
        fc.nat(300),
        (version, channel, payload, at) => {
          const spec = specOf(version);
          const body = spec.isBase64 ? encodeBase64(payload) : payload;
          const message = Uint8Array.of(channelByte(channel, spec), ...body);
          const events = demux(version, [message.subarray(0, at), message.subarray(at)]);
          expect(events).toEqual([[channel, Buffer.from(payload).toString("latin1")]]);
          expect(Buffer.from(encodeBase64(payload)).toString()).toBe(Buffer.from(payload).toString("base64"));
        },
      ),
    );
  });

  it("answers any bytes with data or a ProtocolError", () => {
    const versions = fc.constantFrom<RemoteCommandVersion>("v5.channel.k8s.io", "base64.channel.k8s.io");
    fc.assert(
      fc.property(
        versions,
        fc.array(fc.uint8Array({ maxLength: 20 }), { minLength: 1 }),
        (version, parts) => {
          try {
            demux(version, parts);
          } catch (error) {
            expect(error).toBeInstanceOf(ProtocolError);
          }
        },
      ),
    );
  });
});
