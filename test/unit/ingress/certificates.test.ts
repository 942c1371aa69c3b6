import { X509Certificate } from "node:crypto";
import { expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import type { Ingress, Secret } from "../../../src/api/networking-objects.ts";
import { compilingCertificates } from "../../../src/ingress/certificates.ts";
import { atOnce } from "../../../src/lifecycle/slices.ts";

it("the Secrets of certificates are named once each, with when they expire", async () => {
  const { certPem, keyPem } = await createSelfSignedCertificate(["a.example"]);
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "good", namespace: "shop" },
    type: "kubernetes.io/tls",
    data: { "tls.crt": base64(certPem), "tls.key": base64(keyPem) },
  } as Secret;
  const ingress = (name: string, secretName: string) =>
    ({
      apiVersion: "networking.k8s.io/v1",
      kind: "Ingress",
      metadata: { name, namespace: "shop" },
      spec: { tls: [{ hosts: ["a.example"], secretName }] },
    }) as Ingress;
  const { secrets } = atOnce(
    compilingCertificates(
      [ingress("one", "good"), ingress("two", "good"), ingress("three", "none")],
      (_namespace, name) => (name === "good" ? secret : undefined),
      "first",
    ),
  );
  const { validFrom, validTo } = new X509Certificate(certPem);
  const expiresAtMs = Date.parse(validTo);
  const lifetimeMs = expiresAtMs - Date.parse(validFrom);
  expect(secrets).toEqual([{ namespace: "shop", secret: "good", expiresAtMs, lifetimeMs }]);
});

it("certificates are read a few at a time: each is a step of its own", async () => {
  const { certPem, keyPem } = await createSelfSignedCertificate(["a.example"]);
  const data = Object.fromEntries(
    [
      ["tls.crt", certPem],
      ["tls.key", keyPem],
    ].map(([name, pem = ""]) => [name, Buffer.from(pem).toString("base64")]),
  );
  const secretOf = (_namespace: string, name: string) => ({ metadata: { name }, data }) as unknown as Secret;
  const tls = Array.from({ length: 50 }, (_, index) => ({ secretName: `secret-${index}` }));
  const ingress = { metadata: { name: "many", namespace: "shop" }, spec: { tls } } as unknown as Ingress;
  const work = compilingCertificates([ingress], secretOf, "first");
  let steps = 0;
  while (work.next().done !== true) steps += 1;
  expect(steps).toBeGreaterThanOrEqual(tls.length);
});
