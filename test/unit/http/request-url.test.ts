import { expect, it } from "vitest";
import { requestUrlOf } from "../../../src/http/request-url.ts";

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
