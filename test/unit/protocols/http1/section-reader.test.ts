import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SectionReader } from "../../../../protocols/http1/section-reader.ts";

const bytesOf = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "latin1"));

function reader(maxBytes = 1_000): SectionReader<Uint8Array> {
  const section = new SectionReader<Uint8Array>();
  section.bytesLeft = maxBytes;
  return section;
}

describe("a section", () => {
  const HEAD = "HTTP/1.1 200 OK\r\nA: \xe9\rb\nC: d\r\n\r\n";

  it("ends behind its empty line, wherever it is cut, and leaves what follows", () => {
    const whole = bytesOf(`${HEAD}body`);
    for (let cut = 0; cut < HEAD.length; cut += 1) {
      const section = reader();
      expect(section.push(whole.subarray(0, cut), 0)).toBe(cut);
      expect(section.text).toBeUndefined();
      expect(section.incomplete).toBe(HEAD.slice(0, cut));
      expect(section.beginning).toBe(HEAD.slice(0, Math.min(cut, 16)));
      expect(section.push(whole, cut)).toBe(HEAD.length);
      expect(section.text).toBe(HEAD);
      expect([section.incomplete, section.beginning]).toEqual(["", ""]);
    }
  });

  it.each([
    ["CRLF", "A: b\r\n\r\n"],
    ["LF", "A: b\n\n"],
    ["LF, then CRLF", "A: b\n\r\n"],
    ["CRLF, then LF", "A: b\r\n\n"],
    ["nothing but the empty line", "\r\n"],
  ])("ends with %s, also byte by byte", (_name, text) => {
    const section = reader();
    const bytes = bytesOf(text);
    for (let at = 0; at < bytes.length - 1; at += 1) section.push(bytes.subarray(at, at + 1), 0);
    expect(section.text).toBeUndefined();
    section.push(bytes.subarray(-1), 0);
    expect(section.text).toBe(text);
  });

  it.each(["A: b\r\n\r\r\n", "\r\r\n", "A\r\nb\r\n", "\rA\n"])("does not end with %j", (text) => {
    for (let cut = 0; cut <= text.length; cut += 1) {
      const section = reader();
      section.push(bytesOf(text.slice(0, cut)), 0);
      section.push(bytesOf(text.slice(cut)), 0);
      expect(section.text).toBeUndefined();
    }
  });

  it("is read with the conversion that was passed, if one chunk contains it", () => {
    const calls: [number, number][] = [];
    const section = new SectionReader<Uint8Array>((_bytes, start, end) => {
      calls.push([start, end]);
      return "converted";
    });
    section.bytesLeft = 100;
    expect(section.push(bytesOf("..A\n\n.."), 2)).toBe(5);
    expect(section.text).toBe("converted");
    expect(calls).toEqual([[2, 5]]);
  });
});

describe("the budget", () => {
  const tooLarge = expect.objectContaining({ name: "ProtocolError", code: "header-block-too-large" });

  it("allows as many bytes as it says, however they arrive, and not one more", () => {
    const text = "A: bcd\r\n\r\n";
    for (let cut = 0; cut < text.length; cut += 1) {
      const push = (maxBytes: number) => {
        const section = reader(maxBytes);
        section.push(bytesOf(text.slice(0, cut)), 0);
        section.push(bytesOf(text.slice(cut)), 0);
        return section.text;
      };
      expect(push(text.length)).toBe(text);
      expect(() => push(text.length - 1)).toThrow(tooLarge);
    }
  });

  it("is one for all sections until the next is allowed", () => {
    const section = reader(10);
    for (let count = 0; count < 3; count += 1) section.push(bytesOf("A\n\n"), 0);
    expect(() => section.push(bytesOf("A\n\n"), 0)).toThrow(tooLarge);
    section.bytesLeft = 3;
    section.push(bytesOf("A\n\n"), 0);
    expect(section.text).toBe("A\n\n");
  });
});

describe("consecutive sections", () => {
  it("come out as they went in, wherever they are cut", () => {
    const line = fc.stringMatching(/^[ -~\r]{0,8}[ -~]$/);
    const sections = fc.array(fc.array(line, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        sections,
        fc.constantFrom("\n", "\r\n"),
        fc.integer({ min: 1, max: 9 }),
        (all, end, size) => {
          const texts = all.map((lines) => `${lines.join(end)}${end}${end}`);
          const bytes = bytesOf(texts.join(""));
          const section = reader(bytes.length);
          const found: string[] = [];
          for (let at = 0; at < bytes.length; at += size) {
            const chunk = bytes.subarray(at, at + size);
            for (let next = 0; next < chunk.length; ) {
              next = section.push(chunk, next);
              if (section.text !== undefined) found.push(section.text);
            }
          }
          expect(found).toEqual(texts);
        },
      ),
    );
  });
});
