import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Base64Decoder, encodeBase64 } from "../../../../protocols/remotecommand/channel-demux.ts";

const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "latin1"));

function decode(text: string, cut = 0): string {
  const decoder = new Base64Decoder();
  const first = decoder.push(bytesOf(text.slice(0, cut)), false);
  return Buffer.concat([first, decoder.push(bytesOf(text.slice(cut)), true)]).toString("latin1");
}

describe("base64", () => {
  // RFC 4648 section 10.
  it.each([
    ["", ""],
    ["f", "Zg=="],
    ["fo", "Zm8="],
    ["foo", "Zm9v"],
    ["foob", "Zm9vYg=="],
    ["fooba", "Zm9vYmE="],
    ["foobar", "Zm9vYmFy"],
    ["\xfb\xef\xff", "++//"],
  ])("%j is %s, wherever it is cut", (text, encoded) => {
    expect(Buffer.from(encodeBase64(bytesOf(text))).toString()).toBe(encoded);
    for (let cut = 0; cut <= encoded.length; cut += 1) expect(decode(encoded, cut)).toBe(text);
  });

  it("may have line breaks anywhere", () => {
    expect(decode("\r\nZ\nm8\r=\n")).toBe("fo");
  });

  it("is read back, with one decoder for all messages", () => {
    const decoder = new Base64Decoder();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 50 }), fc.nat(80), (bytes, cut) => {
        // A padding is a message's last group, and a decoder reads one message.
        const whole = bytes.subarray(0, bytes.length - (bytes.length % 3));
        const encoded = encodeBase64(whole);
        const parts = [
          decoder.push(encoded.subarray(0, cut), false),
          decoder.push(encoded.subarray(cut), true),
        ];
        expect(Buffer.concat(parts)).toEqual(Buffer.from(whole));
        const text = Buffer.from(encodeBase64(bytes)).toString();
        expect(text).toBe(Buffer.from(bytes).toString("base64"));
        expect(decode(text, cut)).toBe(Buffer.from(bytes).toString("latin1"));
      }),
    );
  });

  it.each([
    ["Z", "base64 ends within a group"],
    ["Zg=", "base64 ends within a group"],
    ["Zm9vY", "base64 ends within a group"],
    ["=", "a character that is not base64"],
    ["Z===", "a character that is not base64"],
    ["Zg=v", "a character that is not base64"],
    ["Zg==Zg==", "a character that is not base64"],
    ["Zm9-", "a character that is not base64"],
    ["Zm9_", "a character that is not base64"],
    ["Zm 9v", "a character that is not base64"],
    ["Zm9\xe9", "a character that is not base64"],
  ])("%j is refused, wherever it is cut", (text, message) => {
    for (let cut = 0; cut <= text.length; cut += 1) {
      expect(() => decode(text, cut)).toThrow(
        expect.objectContaining({ name: "ProtocolError", code: "malformed-message", message }),
      );
    }
  });
});
