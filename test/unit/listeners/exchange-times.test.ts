import { expect, it } from "vitest";
import { isLongRunning, isOutputPath } from "../../../src/listeners/exchange-times.ts";

const SESSIONS = "/apis/sluice.dev/v1alpha1/namespaces/default/streamingsessions";

it.each([
  [`${SESSIONS}/one/output`, true],
  [`${SESSIONS}/one/output/`, true],
  [`${SESSIONS}/output/output`, true],
  [`${SESSIONS}/output`, false],
  [`${SESSIONS}/one`, false],
  ["/apis/other.dev/v1/namespaces/default/streamingsessions/one/output", false],
  ["/api/v1/namespaces/default/pods/streamingsessions/output", false],
])("%s is a session's output: %s", (path, isOutput) => {
  expect([isOutputPath(path), isLongRunning(path), isLongRunning(`${path}?a=/b`)]).toEqual(
    new Array(3).fill(isOutput),
  );
});

it.each([
  "/api/v1/pods?watch=true",
  "/api/v1/watch/pods",
  "/api/v1/namespaces/a/pods/b/log?follow=1",
])("%s lasts", (url) => expect(isLongRunning(url)).toBe(true));
