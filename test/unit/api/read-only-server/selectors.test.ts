import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StatusError } from "../../../../packages/client/src/api/status.ts";
import type { Pod } from "../../../../src/api/objects.ts";
import {
  parseFieldSelector,
  parseLabelSelector,
} from "../../../../src/api/read-only-server/label-selector.ts";
import { resources } from "../../../../src/api/read-only-server/resources.ts";

const labels = {
  huge: "9223372036854775808",
  app: "web",
  tier: "front",
  level: "3",
  empty: "",
  "example.com/x": "y",
};

describe("label selectors", () => {
  it.each([
    ["", true],
    ["app=web", true],
    ["app==web,tier=front", true],
    ["app=web,tier=back", false],
    ["app!=web", false],
    ["absent!=x", true],
    ["app in (a, web)", true],
    ["app notin (a,web)", false],
    ["absent notin (a)", true],
    ["absent in (a)", false],
    ["app", true],
    ["absent", false],
    [" ! absent ", true],
    ["!app", false],
    ["level>2,level<4", true],
    ["level>3", false],
    ["level<9223372036854775807", true],
    ["app\t=\r\nweb", true],
    // A label's value past int64 is no integer.
    ["huge>1", false],
    ["app>1", false],
    ["empty=", true],
    ["empty=,app=web", true],
    ["absent=", false],
    ["example.com/x=y", true],
    ["toString", false],
    // Go's lexer: a NUL ends a token, and behind one the selector.
    ["app\0=web", true],
    ["app=web\0\0,absent", true],
    ["app in ()", false],
    ["empty in (,)", true],
  ])("%j: %s", (selector, expected) => {
    expect(parseLabelSelector(selector)(labels)).toBe(expected);
  });

  it.each([
    "=x",
    "a b",
    "a in b",
    "a in (b",
    "a=b c",
    "a,",
    "a==!b",
    "(",
    "a>x",
    "a=-b",
    "a=(",
    "!",
    "-a",
    // No white space to Go's lexer.
    "a\u00a0in (b)",
    "a=b,\u00a0c",
    "\ufeffa",
    "a>9223372036854775808",
    "a<-9223372036854775809",
    // An integer, and no value of a label.
    "a>-5",
    "a>+5",
    "a in (b,=)",
  ])("%j is refused", (selector) => {
    expect(() => parseLabelSelector(selector)).toThrow(/^unable to parse requirement: |^found '/);
  });

  it("are matchers or 400, whatever the text", () => {
    const word = fc.constantFrom(
      "a",
      "b",
      "=",
      "==",
      "!=",
      "!",
      ",",
      "(",
      ")",
      "in",
      "notin",
      "<",
      ">",
      " ",
      "1",
      "/",
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(word).map((words) => words.join("")),
        ),
        (selector) => {
          try {
            expect(typeof parseLabelSelector(selector)(labels)).toBe("boolean");
          } catch (error) {
            expect(error).toBeInstanceOf(StatusError);
            expect((error as StatusError).code).toBe(400);
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe("field selectors", () => {
  const pods = resources.find(({ name }) => name === "pods");
  const pod: Pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "a,b", namespace: "default" },
    spec: { containers: [], nodeName: "n=1" },
    status: { phase: "Running" },
  };
  const matches = (selector: string) => pods && parseFieldSelector(selector, pods)(pod);

  it.each([
    ["", true],
    ["metadata.name=a\\,b", true],
    ["spec.nodeName==n\\=1,status.phase=Running", true],
    ["status.phase!=Running", false],
    ["status.podIP=", true],
    ["spec.hostNetwork=false", true],
  ])("%j: %s", (selector, expected) => {
    expect(matches(selector)).toBe(expected);
  });

  it.each([
    "x",
    "toString=a",
    "a=b=c",
    "metadata.name",
    "metadata.name=a\\",
    "metadata.name=\\a",
  ])("%j is refused", (selector) => {
    expect(() => matches(selector)).toThrow(StatusError);
  });
});
