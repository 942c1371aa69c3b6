import { expect, it } from "vitest";
import type { HttpDownstream } from "../../../../packages/client/src/http/downstream/http-downstream.ts";
import { responseHeadersOf } from "../../../../src/http/upstream/exchange-headers.ts";

const client = { canCarryTrailers: () => false } as unknown as HttpDownstream;

it.each([
  [204, ["Content-Length: 3", "X-A: 1"], ["X-A: 1"]],
  [204, ["content-length: 0"], []],
  [304, ["Content-Length: 3"], ["Content-Length: 3"]],
  [200, ["Content-Length: 3", "Content-Length: 3"], ["Content-Length: 3"]],
])("a %d with %j goes to the client with %j", (status, received, sent) => {
  const fields = received.flatMap((line) => line.split(": "));
  const lines = responseHeadersOf(status, fields, client, {}).lines();
  expect(lines.map((line) => line.join(": "))).toEqual(sent);
});
