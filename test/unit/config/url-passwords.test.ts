import { describe, expect, it } from "vitest";
import { parseConfiguration } from "../../../src/config/configuration.ts";

/** Longer than what an error shows of a value. */
const SECRET = `hunter2${"y".repeat(100)}`;
const URL = `ftp://jane:${SECRET}@host`;

describe("a password in a URL of the configuration", () => {
  it.each([
    `authentication: {tokenReview: {url: "${URL}"}}`,
    `authentication: {jwt: [{issuer: {url: "${URL}", audiences: [a]}}]}`,
    `authorization: {mode: [Webhook], webhook: {url: "${URL}"}}`,
    `recording: {folder: a, s3: {endpoint: "${URL}"}}`,
    `kubelet: {egressProxy: {url: "${URL}"}}`,
    `kubelet: {egressProxy: "${URL}"}`,
    `tracing: {endpoint: "${URL}"}`,
    `edge: {allowedOrigins: ["${URL}"]}`,
    `listeners: {kubelet: {upstream: {url: "${URL}"}}}`,
    `listeners: {apiServer: {upstream: {url: "${URL}"}}}`,
    `policy: {limits: {store: {url: "${URL}"}}}`,
    `edge: {allowedOrigins: [\n "${URL}`,
  ])("is not repeated by its error: %s", (section) => {
    const text = `apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\n${section}\n`;
    const parse = () => parseConfiguration(text, "gateway.yaml");
    expect(parse).toThrow(/gateway\.yaml:\d/);
    expect(parse).not.toThrow(/hunter2|yyyyy/);
  });
});
