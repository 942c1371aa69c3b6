import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { systemErrorReason, systemErrorText } from "../../../packages/client/src/config/system-error.ts";

const errorOf = (work: () => unknown): unknown => {
  try {
    work();
  } catch (error) {
    return error;
  }
  return "nothing was thrown";
};

const socketError = (fields: object, message = "") => Object.assign(new Error(message), fields);

describe("a system error", () => {
  it.each<[string, unknown, string]>([
    ["open", errorOf(() => readFileSync("/none/x")), "open /none/x: no such file or directory"],
    ["read a folder", errorOf(() => readFileSync("/proc")), "read: is a directory"],
    ["list", errorOf(() => readdirSync("/none")), "open /none: no such file or directory"],
    ["mkdir", errorOf(() => mkdirSync("/dev/null/x")), "mkdir /dev/null/x: not a directory"],
    ["rm", errorOf(() => rmSync("/proc")), "unlink /proc: is a directory"],
    ["link", errorOf(() => linkSync("/none", "/x")), "link /none /x: no such file or directory"],
    [
      "a long name",
      errorOf(() => readFileSync(`/${"a".repeat(5_000)}`)),
      `open /${"a".repeat(255)}...: file name too long`,
    ],
    [
      "listen",
      socketError({ code: "EADDRINUSE", syscall: "listen", address: "127.0.0.1", port: 80 }),
      "listen tcp 127.0.0.1:80: bind: address already in use",
    ],
    [
      "listen at a path",
      socketError({ code: "EACCES", syscall: "listen", address: "/run/x", port: -1 }),
      "listen unix /run/x: bind: permission denied",
    ],
    [
      "connect",
      socketError({ code: "ECONNREFUSED", syscall: "connect", address: "::1", port: 80 }),
      "dial tcp [::1]:80: connect: connection refused",
    ],
    [
      "connect to several addresses",
      new AggregateError([
        socketError({ code: "ETIMEDOUT", syscall: "connect", address: "127.0.0.1", port: 80 }),
      ]),
      "dial tcp 127.0.0.1:80: connect: connection timed out",
    ],
    [
      "look up",
      socketError({ code: "ENOTFOUND", syscall: "getaddrinfo", hostname: "api.example" }),
      "lookup api.example: no such host",
    ],
    [
      "run",
      socketError({ code: "ENOENT", syscall: "spawn /none", path: "/none" }),
      "spawn /none: no such file or directory",
    ],
    ["too many files", socketError({ code: "EMFILE" }), "too many open files"],
    [
      "an unknown code",
      socketError({ code: "EXYZ", syscall: "open", path: "/x" }, "EXYZ: what"),
      "EXYZ: what",
    ],
    ["another error", new RangeError("must be a number"), "must be a number"],
    ["a text", "no error", "no error"],
  ])("%s", (_, error, text) => {
    expect(systemErrorText(error)).toBe(text);
  });

  it("has a reason without its file", () => {
    expect(systemErrorReason(errorOf(() => readFileSync("/none")))).toBe("no such file or directory");
  });
});
