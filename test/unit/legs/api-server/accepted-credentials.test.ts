import { describe, expect, it } from "vitest";
import { HeaderEdit } from "../../../../packages/client/src/http/header-edit.ts";
import { AcceptedCredentials } from "../../../../src/legs/api-server/accepted-credentials.ts";
import type { IncomingStreaming } from "../../../../src/sessions/incoming-request.ts";

// The bound under test.
const MAX_ACCEPTED_CREDENTIALS = 10_000;

const CLASSIFIED = new HeaderEdit([["X-Kubernetes-PF-FlowSchema-UID", "7d1f"]]);
const PLAIN = new HeaderEdit([["Content-Type", "text/plain"]]);

const incoming = (authorization?: string, target = "/api/v1/pods") =>
  ({
    target,
    headers: authorization === undefined ? [] : [["Authorization", authorization]],
    remoteAddress: "203.0.113.7",
  }) as unknown as IncomingStreaming;
const ADDRESS = "address 203.0.113.7";

describe("callers whom the API server authenticates", () => {
  it.each([
    [200, PLAIN],
    [201, PLAIN],
    [403, CLASSIFIED],
    [404, CLASSIFIED],
    [500, CLASSIFIED],
  ])("have a name of their own once it has answered %d, past authentication", (status, headers) => {
    const credentials = new AcceptedCredentials();
    const caller = credentials.callerOf(incoming("Bearer t"));
    expect([caller.name, caller.isAccepted]).toEqual([ADDRESS, false]);
    const name = caller.answered(status, headers);
    expect(name).toMatch(/^credential /);
    expect(credentials.callerOf(incoming("bearer t more"))).toMatchObject({ name, isAccepted: true });
    expect(credentials.callerOf(incoming("Bearer other")).name).toBe(ADDRESS);
  });

  it.each([
    401, 403, 404, 409, 422, 429, 500, 502, 503,
  ])("share their address's seats when it answers %d", (status) => {
    const credentials = new AcceptedCredentials();
    expect(credentials.callerOf(incoming("Bearer t")).answered(status, PLAIN)).toBeUndefined();
    expect(credentials.callerOf(incoming("Bearer t")).name).toBe(ADDRESS);
  });

  // Balancers answer these for everybody, as kube-apiserver does some of them.
  it.each([
    "/",
    "/healthz",
    "/version",
    "/apiserver",
    "/login",
  ])("share them when only %s succeeds", (target) => {
    const credentials = new AcceptedCredentials();
    expect(credentials.callerOf(incoming("Bearer t", target)).answered(200, PLAIN)).toBeUndefined();
    expect(credentials.callerOf(incoming("Bearer t")).name).toBe(ADDRESS);
  });

  it("lose their name with 401", () => {
    const credentials = new AcceptedCredentials();
    credentials.callerOf(incoming("Bearer t")).answered(200, PLAIN);
    credentials.callerOf(incoming("Bearer t")).answered(401, CLASSIFIED);
    expect(credentials.callerOf(incoming("Bearer t")).name).toBe(ADDRESS);
  });

  // An API server answers these as it answers callers without credentials: each spelling would be another name.
  it.each([
    undefined,
    "Basic dTpw",
    "Bearer",
    "Bearer  t",
    "Negotiate t",
  ])("have no name of their own with %s", (authorization) => {
    const credentials = new AcceptedCredentials();
    expect(credentials.callerOf(incoming(authorization)).answered(200, PLAIN)).toBeUndefined();
    expect(credentials.callerOf(incoming(authorization)).name).toBe(ADDRESS);
  });

  it("are remembered up to a bound, those used last", () => {
    const credentials = new AcceptedCredentials();
    for (let index = 0; index <= MAX_ACCEPTED_CREDENTIALS; index++) {
      credentials.callerOf(incoming(`Bearer ${index}`)).answered(200, PLAIN);
      if (index === 5) credentials.callerOf(incoming("Bearer 0")).answered(200, PLAIN);
    }
    expect([0, 1, 2].map((index) => credentials.callerOf(incoming(`Bearer ${index}`)).isAccepted)).toEqual([
      true,
      false,
      true,
    ]);
  });
});
