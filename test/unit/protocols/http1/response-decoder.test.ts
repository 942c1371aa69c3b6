import { describe, expect, it } from "vitest";
import { defaultHttp1Limits, ResponseDecoder } from "../../../../protocols/http1/index.ts";
import { Recorder } from "./recorder.ts";

const OK = "HTTP/1.1 200 OK\r\n";

describe("ResponseDecoder", () => {
  it("keeps lines in their order, case and number, and values without surrounding white space", () => {
    const { events, surplus } = new Recorder().push(
      `${OK}Set-Cookie: a=1\r\nset-cookie:\t b=2 \t\r\nX-Empty:\r\nX-Latin: \xe9\xa0\r\nContent-Length: 3\r\n\r\nabc`,
    );
    const headers = ["Set-Cookie", "a=1", "set-cookie", "b=2", "X-Empty", "", "X-Latin", "\xe9\xa0"];
    expect(events).toEqual([
      {
        type: "head",
        head: { minorVersion: 1, status: 200, reason: "OK", headers: [...headers, "Content-Length", "3"] },
        delivery: { framing: 3, keepsAlive: true },
      },
      { type: "body", text: "abc" },
      { type: "end", trailers: [] },
    ]);
    expect(surplus).toBe("");
  });

  it.each([
    ["HTTP/2", "\0\0\x12\x04\0\0\0\0\0\0\x03"],
    ["TLS", "\x15\x03\x03\0\x02\x02\x28"],
  ])("names %s where it comes instead, without the end of a line, wherever it is cut", (protocol, bytes) => {
    for (let cut = 0; cut < bytes.length; cut += 1) {
      const { error } = new Recorder().push(bytes.slice(0, cut)).push(bytes.slice(cut));
      expect(error?.foreignProtocol).toBe(protocol);
    }
    const asGo = new Recorder("GET", { leniency: "as-go" }).push(bytes);
    expect(asGo.error).toBeUndefined();
  });

  it.each([
    "SSH-2.0-OpenSSH_9.2p1\r\n",
    "220 x\r\n",
    "+OK\n",
  ])("refuses %j at once, because its server waits for an answer, wherever it is cut", (bytes) => {
    for (let cut = 0; cut < bytes.length; cut += 1) {
      const { error } = new Recorder().push(bytes.slice(0, cut)).push(bytes.slice(cut));
      expect(error?.message).toMatch(/^malformed HTTP /);
    }
    const asGo = new Recorder("GET", { leniency: "as-go" }).push(bytes);
    expect(asGo.error).toBeUndefined();
  });

  it("waits for the rest of a status line", () => {
    const head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for (let cut = 0; cut < head.length; cut += 1) {
      const recorder = new Recorder().push(head.slice(0, cut)).push(head.slice(cut));
      expect([cut, recorder.error]).toEqual([cut, undefined]);
    }
  });

  it.each([
    ["a length", "GET", `${OK}Content-Length: 2\r\n\r\nab`, 2, true],
    [
      "chunks",
      "GET",
      `${OK}Transfer-Encoding: Chunked\r\n\r\n1\r\na\r\n1;x="y"\r\nb\r\n0\r\n\r\n`,
      "chunked",
      true,
    ],
    ["the connection's end", "GET", `${OK}\r\nab`, "until-close", false],
    ["no reason and no space", "GET", "HTTP/1.1 299\r\nContent-Length: 2\r\n\r\nab", 2, true],
    ["bare LF in the head", "GET", "HTTP/1.1 200 OK\nContent-Length: 2\n\nab", 2, true],
  ])("reads a body framed by %s", (_name, method, wire, framing, keepsAlive) => {
    const recorder = new Recorder(method).push(wire);
    expect(recorder.decoder.end()).toBe(true);
    expect(recorder.events[0]).toMatchObject({ type: "head", delivery: { framing, keepsAlive } });
    expect(recorder.body).toBe("ab");
    expect(recorder.events.at(-1)).toEqual({ type: "end", trailers: [] });
    expect(recorder.surplus).toBe("");
  });

  it.each([
    ["HEAD", `${OK}Content-Length: 5\r\n\r\n`],
    ["HEAD", `${OK}Transfer-Encoding: chunked\r\n\r\n`],
    ["GET", "HTTP/1.1 204 No Content\r\n\r\n"],
    ["GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"],
    ["GET", "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
  ])("expects no body behind %s %j, and leaves what follows", (method, wire) => {
    const recorder = new Recorder(method).push(`${wire}HTTP/1.1 200 OK\r\n`);
    expect(recorder.events.map(({ type }) => type)).toEqual(["head", "end"]);
    expect(recorder.surplus).toBe("HTTP/1.1 200 OK\r\n");
    expect(recorder.decoder.isIdle).toBe(true);
  });

  it("gives trailers, and interim responses before the final one", () => {
    const { events } = new Recorder().push(
      `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${OK}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 7\r\nx-sum: 8\r\n\r\n`,
    );
    expect(events.map(({ type }) => type)).toEqual(["interim", "interim", "head", "body", "end"]);
    expect(events[0]).toMatchObject({
      head: { status: 103, reason: "Early Hints", headers: ["Link", "</a>"] },
    });
    expect(events[4]).toEqual({ type: "end", trailers: ["X-Sum", "7", "x-sum", "8"] });
  });

  it("passes parts as they come, as slices of what was pushed", () => {
    const parts: Buffer[] = [];
    const ignore = (): void => {};
    const decoder = new ResponseDecoder<Buffer>({
      onInterim: ignore,
      onHead: ignore,
      onBody: (part) => parts.push(part),
      onEnd: ignore,
    });
    decoder.expect("GET");
    const first = Buffer.from(`${OK}Content-Length: 6\r\n\r\nab`);
    const second = Buffer.from("cd");
    decoder.push(first);
    decoder.push(second);
    expect(parts.map(String)).toEqual(["ab", "cd"]);
    expect(parts[0]?.buffer).toBe(first.buffer);
    expect(parts[1]).toBe(second);
    expect(decoder.end()).toBe(false);
  });

  it("takes nothing for the answer of a request that is expected while the last response ends", () => {
    let heads = 0;
    const decoder = new ResponseDecoder({
      onInterim: () => {},
      onHead: () => {
        heads += 1;
      },
      onBody: () => {},
      onEnd: () => decoder.expect("GET"),
    });
    decoder.expect("GET");
    const wire = Buffer.from(`${OK}Content-Length: 0\r\n\r\n`.repeat(2));
    expect(decoder.push(wire)).toBe(wire.length / 2);
    expect(heads).toBe(1);
  });

  it.each([
    ["nothing", "", false],
    ["half a head", "HTTP/1.1 200 OK\r\nA: b\r\n", false],
    ["an interim response", "HTTP/1.1 103 X\r\n\r\n", false],
    ["half a body", `${OK}Content-Length: 3\r\n\r\nab`, false],
    ["chunks without the last one", `${OK}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n`, false],
    ["a last chunk without its empty line", `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n`, false],
    ["a body up to the end", `${OK}\r\nab`, true],
  ])("says of a connection that ends behind %s whether that is whole", (_name, wire, isWhole) => {
    expect(new Recorder().push(wire).decoder.end()).toBe(isWhole);
  });

  it("is finished once it has refused something", () => {
    const { decoder } = new Recorder().push("garbage\r\n\r\n");
    expect(() => decoder.push(Buffer.from(OK))).toThrow("failed before");
    expect(decoder.end()).toBe(false);
  });
});

describe("ResponseDecoder refuses", () => {
  const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`;
  it.each([
    ["no HTTP", "SSH-2.0-OpenSSH\r\n\r\n", "malformed HTTP response"],
    ["an empty line first", `\r\n${OK}\r\n`, "malformed HTTP response"],
    ["a folded line", `${OK}A: b\r\n c\r\n\r\n`, "malformed MIME header: missing colon"],
    ["a list of lengths", `${OK}Content-Length: 1, 1\r\n\r\n`, "bad Content-Length"],
    ["more than a chunk", `${CHUNKED}1\r\nab\r\n`, "malformed chunked encoding"],
    ["a folded trailer", `${CHUNKED}0\r\nA: b\r\n c\r\n\r\n`, "malformed MIME header: missing colon"],
  ])("%s", (_name, wire, message) => {
    expect(new Recorder().push(wire).refusal).toBe(`malformed-message: ${message}`);
  });

  it.each([
    "none",
    "folded-lines",
    "as-go",
  ] as const)("%s: what two readers could frame differently", (leniency) => {
    const refusal = (wire: string): string | undefined =>
      new Recorder("GET", { leniency }).push(wire).refusal;
    expect(refusal(`${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`)).toContain("multiple");
    expect(refusal(`${OK}A: b\rContent-Length: 1\r\n\r\n`)).toContain("header line");
    expect(refusal(`${CHUNKED}1\na\n0\n\n`)).toContain("bare LF");
    expect(refusal(`${OK}Transfer-Encoding: gzip, chunked\r\n\r\n`)).toContain("unsupported");
  });

  const limits = { ...defaultHttp1Limits, maxHeadBytes: 100, maxHeaders: 2, maxChunkLineBytes: 8 };
  const headOf = (bytes: number): string => `${OK}A: ${"b".repeat(bytes - OK.length - 7)}\r\n\r\n`;

  it("heads that are too long, at the limit and beyond it, also without an end in sight", () => {
    expect(new Recorder("HEAD", { limits }).push(headOf(100)).refusal).toBeUndefined();
    const tooLarge = "header-block-too-large: header size limit exceeded";
    expect(new Recorder("HEAD", { limits }).push(headOf(101)).refusal).toBe(tooLarge);
    expect(new Recorder("HEAD", { limits }).push("H".repeat(101)).refusal).toBe(tooLarge);
    const endless = new Recorder("GET", { limits });
    for (let index = 0; index < 4; index++) endless.push("HTTP/1.1 102 Processing\r\n\r\n");
    expect(endless.refusal).toBe(tooLarge);
    expect(endless.events).toHaveLength(4);
  });

  it("too many lines, and trailers beyond the same limits", () => {
    expect(new Recorder("HEAD", { limits }).push(`${OK}A: 1\r\nB: 2\r\n\r\n`).refusal).toBeUndefined();
    const tooMany = "too-many-headers: too many header lines";
    expect(new Recorder("HEAD", { limits }).push(`${OK}A: 1\r\nB: 2\r\nC: 3\r\n\r\n`).refusal).toBe(tooMany);
    const trailers = (text: string): string | undefined =>
      new Recorder("GET", { limits }).push(`${CHUNKED}0\r\n${text}\r\n\r\n`).refusal;
    expect(trailers("A: 1\r\nB: 2\r\nC: 3")).toBe(tooMany);
    expect(trailers(`A: ${"b".repeat(100)}`)).toBe("header-block-too-large: header size limit exceeded");
  });

  it("chunk lines that are too long, at the limit and beyond it", () => {
    expect(new Recorder("GET", { limits }).push(`${CHUNKED}1;abcd\r\na`).body).toBe("a");
    expect(new Recorder("GET", { limits }).push(`${CHUNKED}1;abcde\r\na`).refusal).toBe(
      "malformed-message: chunk line too long",
    );
  });
});

describe("ResponseDecoder of folded lines", () => {
  const reading = { leniency: "folded-lines" } as const;

  it("joins them by one space each, in heads and trailers", () => {
    const { events } = new Recorder("GET", reading).push(
      `${OK}A:\r\n\t b \r\n\r\n`.replace(
        "\r\n\r\n",
        "\r\n \n  c\r\nTransfer-Encoding:\n chunked\r\n\r\n0\r\nD: e \r\n\tf\r\n\r\n",
      ),
    );
    expect(events).toMatchObject([
      { head: { headers: ["A", "b  c", "Transfer-Encoding", "chunked"] }, delivery: { framing: "chunked" } },
      { trailers: ["D", "e f"] },
    ]);
  });

  it.each(["HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1  200 OK\r\n\r\n"])("%j is still no HTTP/1", (wire) => {
    expect(new Recorder("GET", reading).push(wire).refusal).toBe(
      "malformed-message: malformed HTTP response",
    );
  });

  // A continuation used to copy all of its header: 0.3 MiB took 4 s, and a whole one a minute.
  it("takes linear time for a mebibyte of them", { timeout: 5_000 }, () => {
    const folds = 1024 * 256 - 20;
    const limits = { ...defaultHttp1Limits, maxHeadBytes: 1024 * 1024 };
    const { events } = new Recorder("HEAD", { ...reading, limits }).push(
      `${OK}A: b\r\n${" c\r\n".repeat(folds)}\r\n`,
    );
    const [first] = events;
    expect(first?.type === "head" && first.head.headers[1]).toHaveLength(2 * folds + 1);
  });
});

describe("ResponseDecoder as Go's client reads", () => {
  const goOf = (wire: string): Recorder => new Recorder("GET", { leniency: "as-go" }).push(wire);

  it.each([
    ["HTTP/2.0 in HTTP/1", "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nab", 200, 2],
    ["a name with a space, which is no length", `${OK}Content-Length : 9\r\n\r\nab`, 200, "until-close"],
    ["blanks before the code", "HTTP/1.1   200 OK\r\nContent-Length: 2\r\n\r\nab", 200, 2],
    ["a code below 100", "HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nab", 99, 2],
    ["controls in the reason", "HTTP/1.1 200 O\0\x1bK\r\nContent-Length: 2\r\n\r\nab", 200, 2],
    [
      "chunks beside a length",
      `${OK}Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
      200,
      "chunked",
    ],
    [
      "a coding of HTTP/1.0",
      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nab",
      200,
      2,
    ],
  ])("takes %s", (_name, wire, status, framing) => {
    const { events, decoder } = goOf(wire);
    expect(decoder.end()).toBe(true);
    expect(events[0]).toMatchObject({ type: "head", head: { status }, delivery: { framing } });
    expect(events.slice(1)).toEqual([
      { type: "body", text: "ab" },
      { type: "end", trailers: [] },
    ]);
  });

  it.each([
    ["a line before any field", `${OK} a: b\r\n\r\n`, 'malformed MIME header initial line: " a: b"'],
    ["bytes of HTTP/2", "\0\0\x12\x04\n\n", 'malformed HTTP response "\\u0000\\u0000\\u0012\\u0004"'],
    ["no version", "SSH-2.0 200 y\r\n\r\n", 'malformed HTTP version "SSH-2.0"'],
    ["no code", "HTTP/1.1 2000 y\r\n\r\n", 'malformed HTTP status code "2000"'],
    [
      "two lengths",
      `${OK}Content-Length: 3\r\ncontent-length: 4\r\n\r\n`,
      'http: message cannot contain multiple Content-Length headers; got ["3" "4"]',
    ],
    ["another coding", `${OK}Transfer-Encoding: gzip\r\n\r\n`, 'unsupported transfer encoding: "gzip"'],
  ])("refuses %s, and quotes it", (_name, wire, text) => {
    expect(goOf(wire).error?.quoting(JSON.stringify)).toBe(text);
  });

  it("refuses the line that the end of the connection cut off, or calls the response cut short", () => {
    expect(() => goOf(`${OK}Content-Le`).decoder.end()).toThrow("missing colon");
    expect(() => goOf("hello").decoder.end()).toThrow("malformed HTTP response");
    expect(goOf(`${OK}Content-Length: 3\r`).decoder.end()).toBe(false);
    expect(new Recorder("GET").push(`${OK}Content-Le`).decoder.end()).toBe(false);
  });
});

describe("ResponseDecoder of a proxy's answer", () => {
  it("expects no body behind a successful CONNECT, whatever its lines say", () => {
    const recorder = new Recorder("CONNECT").push(
      `${OK}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc`,
    );
    expect(recorder.events.map(({ type }) => type)).toEqual(["head", "end"]);
    expect(recorder.surplus).toBe("abc");
    expect(new Recorder("CONNECT").push("HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nabc").body).toBe("abc");
  });
});
