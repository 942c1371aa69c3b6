import { expect, it, onTestFinished } from "vitest";
import { CertificateExpiry } from "../../../src/app/certificates-component.ts";

const DAY_MS = 86_400_000;

it("a certificate is logged once at 30 days, at 1 day and when it has expired, and again once it was replaced", () => {
  const lines: string[] = [];
  const log = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${(fields as { certificate: string }).certificate}: ${message}`);
  let nowMs = 0;
  const expiry = new CertificateExpiry({
    logger: { warn: log("warn"), error: log("error") },
    nowMs: () => nowMs,
  });
  onTestFinished(() => expiry.stop());
  const logged = () => lines.splice(0);
  expiry.follow("a", 100 * DAY_MS);
  const at = (days: number): string[] => {
    nowMs = days * DAY_MS;
    expiry.check();
    expiry.check();
    return logged();
  };
  expect(at(69)).toEqual([]);
  expect(at(70)).toEqual(["warn a: a certificate expires soon"]);
  expect(at(98)).toEqual([]);
  expect(expiry.health()).toBeUndefined();
  expect(at(99)).toEqual(["warn a: a certificate expires soon"]);
  expect(expiry.health()).toEqual({ note: "a expires 1970-04-11T00:00:00.000Z" });
  expect(at(100)).toEqual(["error a: a certificate has expired"]);
  expect(expiry.health()).toEqual({ note: "a expired 1970-04-11T00:00:00.000Z" });
  expiry.follow("a", 100 * DAY_MS);
  expect(logged()).toEqual([]);
  expiry.follow("a", 100.5 * DAY_MS);
  // A start says so at once.
  expect(logged()).toEqual(["warn a: a certificate expires soon"]);
  expiry.follow("a", 400 * DAY_MS);
  expect([at(101), expiry.health()]).toEqual([[], undefined]);
});

it("a certificate of a day is logged in the last third and the last tenth of its lifetime", () => {
  const lines: string[] = [];
  let nowMs = 0;
  const expiry = new CertificateExpiry({
    logger: { warn: () => lines.push("warn"), error: () => lines.push("error") },
    nowMs: () => nowMs,
  });
  onTestFinished(() => expiry.stop());
  expiry.follow("a", DAY_MS, DAY_MS);
  const at = (hours: number): [string[], boolean] => {
    nowMs = (hours / 24) * DAY_MS;
    expiry.check();
    return [lines.splice(0), expiry.health() !== undefined];
  };
  expect(at(0)).toEqual([[], false]);
  expect(at(15.9)).toEqual([[], false]);
  expect(at(16.1)).toEqual([["warn"], false]);
  expect(at(21.5)).toEqual([[], false]);
  expect(at(21.7)).toEqual([["warn"], true]);
  expect(at(24)).toEqual([["error"], true]);
});

it("a certificate that is added is judged alone: as many as Ingresses have take linear time", () => {
  const lines: string[] = [];
  const log = (fields: object) => void lines.push((fields as { certificate: string }).certificate);
  let nowMs = 0;
  const expiry = new CertificateExpiry({ logger: { warn: log, error: log }, nowMs: () => nowMs });
  onTestFinished(() => expiry.stop());
  expiry.follow("a", 100 * DAY_MS);
  nowMs = 90 * DAY_MS;
  expiry.follow("b", 100 * DAY_MS);
  expect(lines.splice(0)).toEqual(["b"]);
  expiry.check();
  expect(lines).toEqual(["a"]);
});
