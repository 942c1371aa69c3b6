import { describe, expect, it } from "vitest";
import { HeaderEdit, HeaderNames } from "../../../packages/client/src/http/header-edit.ts";
import type { HeaderLine } from "../../../packages/client/src/http/header-list.ts";

const list: HeaderLine[] = [
  ["Host", "h"],
  ["X-A", "1"],
  ["x-b", "2"],
  ["x-a", "3"],
];

describe("an edit", () => {
  it("without changes gives the lines with their order, case and repetitions", () => {
    expect(new HeaderEdit(list).lines()).toEqual(list);
  });

  it("drops by name and by test, and shows only what is left", () => {
    const edit = new HeaderEdit(list);
    edit.drop(new HeaderNames(["host"]));
    edit.drop(new HeaderNames(["x-b"]));
    expect(edit.has("host")).toBe(false);
    expect(edit.has("x-a")).toBe(true);
    expect(edit.received("x-b")).toEqual([]);
    expect(edit.received("x-a")).toEqual(["1", "3"]);
    expect(edit.lines()).toEqual([
      ["X-A", "1"],
      ["x-a", "3"],
    ]);
    edit.dropIf((name) => name.toLowerCase() === "x-a");
    edit.dropIf((name) => name === "other");
    expect(edit.lines()).toEqual([]);
  });

  it("replaces all lines of a name at the first one's place, and else at the end, in order", () => {
    const edit = new HeaderEdit(list);
    edit.set("X-New", "n");
    edit.set("X-a", "9");
    edit.add("x-b", "again");
    const lines = [
      ["Host", "h"],
      ["X-a", "9"],
      ["x-b", "2"],
      ["X-New", "n"],
      ["x-b", "again"],
    ];
    expect(edit.lines()).toEqual(lines);
    expect(edit.lines()).toEqual(lines);
  });

  it("does not drop its own lines, and puts one for a dropped name at the end", () => {
    const edit = new HeaderEdit(list);
    edit.drop(new HeaderNames(["host"]));
    edit.set("Host", "other");
    edit.add("X-B", "mine");
    edit.dropIf((name) => name === "x-b");
    expect(edit.has("host")).toBe(true);
    expect(edit.lines()).toEqual([
      ["X-A", "1"],
      ["x-a", "3"],
      ["Host", "other"],
      ["X-B", "mine"],
    ]);
  });
});

it("knows names in any case, and no others of the same first letter and length", () => {
  const names = new HeaderNames(["connection", "te"]);
  expect(["Connection", "CONNECTION", "te", "Te"].every((name) => names.has(name))).toBe(true);
  expect(["Connectiom", "tE2", "ta", "", "\u0054\u0100"].some((name) => names.has(name))).toBe(false);
});
