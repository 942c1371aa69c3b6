import { describe, expect, it } from "vitest";
import { ResponseHeadReader } from "../../../src/http/response-head.ts";

const MIB = 1024 * 1024;

describe("ResponseHeadReader", () => {
  it("joins folded lines by one space each, and leaves empty ones out", () => {
    const text = "HTTP/1.1 200 OK\r\nA:\r\n\t b \r\n \r\n  c\r\nD: e\r\n\r\nrest";
    const read = new ResponseHeadReader(MIB).push(Buffer.from(text));
    expect(read?.head.headers).toEqual([
      ["A", "b c"],
      ["D", "e"],
    ]);
    expect(read?.rest.toString()).toBe("rest");
  });

  it("is the same however the head is cut", () => {
    const bytes = Buffer.from("HTTP/1.1 101 Fine \xe9\r\nA: b\n c\r\n\r\n", "latin1");
    const whole = new ResponseHeadReader(MIB).push(bytes);
    const reader = new ResponseHeadReader(MIB);
    const reads = Array.from(bytes, (_, at) => reader.push(bytes.subarray(at, at + 1)));
    expect(reads.slice(0, -1).every((read) => read === undefined)).toBe(true);
    expect(reads.at(-1)?.head).toEqual(whole?.head);
  });

  // A continuation used to copy all of its header: 0.3 MiB took 4 s, and a whole one a minute.
  it("takes linear time for a mebibyte of folded lines", { timeout: 5_000 }, () => {
    const head = `HTTP/1.1 200 OK\r\nA: b\r\n${" c\r\n".repeat(MIB / 4 - 20)}\r\n`;
    const read = new ResponseHeadReader(MIB).push(Buffer.from(head));
    expect(read?.head.headers[0]?.[1]).toHaveLength(2 * (MIB / 4 - 20) + 1);
  });
});
