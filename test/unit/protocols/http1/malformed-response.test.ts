import { describe, expect, it } from "vitest";
import {
  foreignProtocolOf,
  MalformedResponse,
  malformedLine,
} from "../../../../protocols/http1/malformed-response.ts";

const quote = (text: string): string => JSON.stringify(text);

describe("foreignProtocolOf", () => {
  it.each([
    ["HTTP/2", "\0\0\x12\x04\0\0\0\0\0\0\x03", 9],
    ["TLS", "\x15\x03\x01\0\x02\x02\x46", 5],
    ["TLS", "\x15\x03\x03\0\x02\x02\x28", 5],
  ])("recognizes %s by its first message, once enough of it is there", (protocol, text, bytes) => {
    for (let length = 0; length <= text.length; length += 1) {
      expect(foreignProtocolOf(text.slice(0, length))).toBe(length < bytes ? undefined : protocol);
    }
  });

  it.each([
    "HTTP/1.1 200 OK",
    "SSH-2.0-OpenSSH_9.6",
    "\0\0\0\x04\x01\0\0\0\0",
    "\0\0\x12\x04\0\0\0\0\x01",
    "\x16\x03\x03\0\x02\x02\x28",
    "\x15\x03\x03\0\x1a\0\0",
  ])("does not take %j for either", (text) => {
    expect(foreignProtocolOf(text)).toBeUndefined();
  });
});

describe("MalformedResponse", () => {
  it("has nothing of the peer in its message, and all of it where it is quoted", () => {
    const error = new MalformedResponse("malformed HTTP response", "SSH-2.0");
    expect(error).toMatchObject({ code: "malformed-message", message: "malformed HTTP response" });
    expect(error.isOfFieldLine).toBe(false);
    expect(error.quoting(quote)).toBe('malformed HTTP response "SSH-2.0"');
  });

  it("quotes several texts as Go prints a list, and none where there is none", () => {
    expect(new MalformedResponse("two lengths", ["1", "2"], "; got ").quoting(quote)).toBe(
      'two lengths; got ["1" "2"]',
    );
    expect(new MalformedResponse("both").quoting(quote)).toBe("both");
    expect(new MalformedResponse("empty", "").quoting(quote)).toBe('empty ""');
  });

  it("names the protocol of a single text", () => {
    const alert = "\x15\x03\x03\0\x02\x02\x28";
    expect(new MalformedResponse("malformed", alert).foreignProtocol).toBe("TLS");
    expect(new MalformedResponse("malformed", [alert]).foreignProtocol).toBeUndefined();
  });
});

describe("malformedLine", () => {
  it.each([
    ["Authorization", 'malformed MIME header: missing colon: "Authorization"'],
    ["A B: c", 'malformed MIME header line: "A B: c"'],
  ])("%j may be a credential", (line, text) => {
    const error = malformedLine(line);
    expect(error.isOfFieldLine).toBe(true);
    expect(error.message).not.toContain(line);
    expect(error.quoting(quote)).toBe(text);
  });
});
