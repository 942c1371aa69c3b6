import { expect, it } from "vitest";
import type { Ingress } from "../../../src/api/networking-objects.ts";
import type { ServiceRoute } from "../../../src/ingress/route.ts";
import { RouteProblems } from "../../../src/ingress/route-problems.ts";
import { fixedBound } from "../../support/fixed-bound.ts";

const MAX_ROUTE_PROBLEMS = fixedBound("src/ingress/route-problems.ts", "MAX_ROUTE_PROBLEMS");

const ingress: Ingress = { kind: "Ingress", metadata: { name: "all", namespace: "ns" } } as Ingress;
const routeTo = (service: string) =>
  ({ type: "service", origin: ingress, namespace: "ns", service, port: 80 }) as unknown as ServiceRoute;
const picker = (refused: readonly string[], appProtocol?: string) => ({
  refused,
  appProtocol,
  next: () => undefined,
});

it("keeps a problem until a request does not find it, and tells of each change once", () => {
  let changes = 0;
  const problems = new RouteProblems(() => {
    changes += 1;
  });
  for (let count = 0; count < 3; count += 1) problems.judge(routeTo("a"), picker(["127.0.0.1"]), []);
  expect(problems.all.map(({ reason }) => reason)).toEqual(["EndpointAddressRefused"]);
  problems.judge(routeTo("a"), picker(["127.0.0.1", "::1"]), []);
  expect(problems.all[0]?.message).toContain("127.0.0.1, ::1 (");
  problems.judge(routeTo("a"), picker([]), []);
  expect([problems.all, changes]).toEqual([[], 3]);
});

it("ends that of appProtocol with a Service that has one, and all with their Ingress", () => {
  const problems = new RouteProblems(() => {});
  const grpc = [["Content-Type", "application/grpc"]] as const;
  problems.judge(routeTo("a"), picker([]), grpc);
  problems.judge(routeTo("a"), picker([]), []);
  expect(problems.all.map(({ reason }) => reason)).toEqual(["MissingAppProtocol"]);
  problems.judge(routeTo("a"), picker([], "kubernetes.io/h2c"), grpc);
  expect(problems.all).toEqual([]);
  problems.judge(routeTo("a"), picker(["::1"]), []);
  problems.retain([ingress]);
  expect(problems.all).toHaveLength(1);
  problems.retain([]);
  expect(problems.all).toEqual([]);
});

it("names five addresses, and has a bound", () => {
  const problems = new RouteProblems(() => {});
  const many = Array.from({ length: 9 }, (_, index) => `127.0.0.${index}`);
  for (let index = 0; index <= MAX_ROUTE_PROBLEMS; index += 1)
    problems.judge(routeTo(`s${index}`), picker(many), []);
  expect(problems.all).toHaveLength(MAX_ROUTE_PROBLEMS);
  expect(problems.all[0]?.message).toContain("127.0.0.4 and 4 more (");
});

it("tells once of a protocol that endpoints' answers show differently, however many requests do", () => {
  let changes = 0;
  const problems = new RouteProblems(() => {
    changes += 1;
  });
  const grpc = [["Content-Type", "application/grpc"]] as const;
  for (let count = 0; count < 3; count += 1) {
    problems.judge(routeTo("a"), picker([]), grpc);
    for (const spoken of ["HTTP/2", "TLS"] as const)
      problems.judgeError({ route: routeTo("a"), appProtocol: undefined }, { spoken });
  }
  expect(problems.all.map(({ message }) => message)).toEqual([
    expect.stringContaining("an endpoint speaks HTTP/2 alone"),
  ]);
  // What the request suggests, then what the endpoint answers.
  expect(changes).toBe(2);
});

it("says what to write for an answer in another protocol, until the Service says something else", () => {
  const problems = new RouteProblems(() => {});
  const said = (appProtocol: string | undefined, spoken: "HTTP/1" | "HTTP/2" | "TLS") => {
    problems.judgeError({ route: routeTo("a"), appProtocol }, { spoken });
    return problems.all.map(({ reason, message }) => [reason, message.slice(message.indexOf(": ") + 2)]);
  };
  expect(said(undefined, "HTTP/2")).toEqual([
    ["MissingAppProtocol", "an endpoint speaks HTTP/2 alone: set appProtocol: kubernetes.io/h2c there"],
  ]);
  problems.judge(routeTo("a"), picker([]), []);
  expect(problems.all).toHaveLength(1);
  expect(said("http", "TLS")).toEqual([
    ["WrongAppProtocol", "an endpoint speaks TLS: set appProtocol: https there"],
  ]);
  expect(said("kubernetes.io/h2c", "HTTP/1")).toEqual([
    ["WrongAppProtocol", "an endpoint does not speak HTTP/2: remove appProtocol: kubernetes.io/h2c there"],
  ]);
  problems.judge(routeTo("a"), picker([]), []);
  expect(problems.all).toEqual([]);
});
