import { describe, expect, it } from "vitest";
import {
  firstHeaderValue,
  hasToken,
  headerValues,
  tokenList,
} from "../../../../protocols/websocket/header-lines.ts";

const LINES = [
  "Host",
  "a",
  "CONNECTION",
  " keep-alive\t",
  "connection",
  "Upgrade , x,, ",
  "Upgrade",
  "connection",
];

describe("header lines", () => {
  it("are found by name in any case, in order, without white space around the value", () => {
    expect(headerValues(LINES, "Connection")).toEqual(["keep-alive", "Upgrade , x,,"]);
    expect(headerValues(LINES, "a")).toEqual([]);
    expect(headerValues(["X", "\u00a0a\u00a0", "x", ""], "x")).toEqual(["\u00a0a\u00a0", ""]);
  });

  it("have a first value, or an empty one", () => {
    expect(firstHeaderValue(LINES, "connection")).toBe("keep-alive");
    expect(firstHeaderValue(LINES, "Sec-WebSocket-Key")).toBe("");
  });

  it("are lists of tokens over all of them; empty ones are dropped", () => {
    expect(tokenList(headerValues(LINES, "connection"))).toEqual(["keep-alive", "Upgrade", "x"]);
    expect(tokenList(["", " ,\t"])).toEqual([]);
  });

  it("contain a whole token in any case", () => {
    expect(hasToken(["keep-alive, UpGrade"], "upgrade")).toBe(true);
    expect(hasToken(["upgrade-insecure, x upgrade"], "upgrade")).toBe(false);
  });
});
