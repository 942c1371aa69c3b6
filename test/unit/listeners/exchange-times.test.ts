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
  // Kubernetes takes all but "0" and "false" for true, and the first of several.
  "/api/v1/pods?watch",
  "/api/v1/pods?watch=TRUE&watch=0",
  "/api/v1/pods?limit=1&watch=t",
  "/api/v1/pods?w%61tch=%31",
  "/api/v1/namespaces/a/pods/b/log?follow",
  "/api/v1/namespaces/a/pods/b/log?%66%6Fllow=yes",
])("%s lasts", (url) => expect(isLongRunning(url)).toBe(true));

it.each([
  "/api/v1/pods",
  "/api/v1/pods?watch=0&watch=1",
  "/api/v1/pods?watch=False",
  "/api/v1/pods?watch=%30",
  "/api/v1/pods?unwatch=1&fieldSelector=watch%3D1",
  // Go drops such a pair.
  "/api/v1/pods?a;watch=1",
  "/api/v1/pods?watch=1;",
])("%s does not last", (url) => expect(isLongRunning(url)).toBe(false));
