import { expect, it } from "vitest";
import { nonUtf8Parameter, requestUrlOf } from "../../../src/http/request-url.ts";

// What kube-apiserver made of the same queries: a pair that it cannot read counts as absent.
it.each([
  ["/exec", ""],
  ["/exec?", ""],
  ["/exec?a=1&b=%41", "a=1&b=A"],
  ["/exec?container=%zz&a=1", "a=1"],
  ["/exec?%zz=1&a=1", "a=1"],
  ["/exec?a=1;b=2&c=3", "c=3"],
  ["/exec?a=%", ""],
  ["/exec?a=%3B", "a=%3B"],
])("%s", (target, query) => {
  const url = requestUrlOf(target);
  expect([url.pathname, url.searchParams.toString()]).toEqual(["/exec", query]);
});

it("takes a byte that is not escaped for a byte", () => {
  // As Node.js gives the bytes of an e with an acute accent.
  expect(requestUrlOf("/exec?command=caf\u00c3\u00a9").searchParams.get("command")).toBe("caf\u00e9");
});

it.each([
  ["/exec?command=%ff%fe&stdout=true", "command"],
  ["/exec?a=1&command=caf\u00e9", "command"],
  ["/exec?a=%ed%a0%80", "a"],
  ["/exec?%ff=1", "\ufffd"],
  ["/exec?command=caf%c3%a9&a=%F0%9F%98%80", undefined],
  ["/exec?command=%ff;&a=1", undefined],
  ["/exec", undefined],
])("%s has a parameter that is not UTF-8: %s", (target, name) => {
  expect(nonUtf8Parameter(requestUrlOf(target))).toBe(name);
});
