import { createSecureContext } from "node:tls";
import { expect, it, vi } from "vitest";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import type { Ingress, Secret } from "../../../src/api/networking-objects.ts";
import { compilingCertificates } from "../../../src/ingress/certificates.ts";
import { atOnce } from "../../../src/lifecycle/slices.ts";

const NAMES = ["one", "two", "three"];

/** Left to a garbage collection, thousands would be freed in one turn of the event loop. */
it("what each TLS Secret was checked with is freed at once, and a Secret that was checked is not again", async () => {
  const { certPem, keyPem } = await createSelfSignedCertificate(["a.example"]);
  const data = Object.fromEntries(
    Object.entries({ "tls.crt": certPem, "tls.key": keyPem }).map(([key, text]) => [
      key,
      Buffer.from(text).toString("base64"),
    ]),
  );
  const secrets = new Map(
    NAMES.map((name) => [
      name,
      { metadata: { name, namespace: "shop" }, type: "kubernetes.io/tls", data } as unknown as Secret,
    ]),
  );
  const ingresses = NAMES.map(
    (name) =>
      ({
        metadata: { name, namespace: "shop" },
        spec: { tls: [{ hosts: [`${name}.example`], secretName: name }] },
      }) as unknown as Ingress,
  );
  const close = vi.spyOn(Object.getPrototypeOf(createSecureContext().context), "close");
  try {
    const compile = () =>
      atOnce(compilingCertificates(ingresses, (_namespace, name) => secrets.get(name), "first"));
    expect(compile().problems).toEqual([]);
    expect(new Set(close.mock.contexts).size).toBe(NAMES.length);
    compile();
    expect(close).toHaveBeenCalledTimes(NAMES.length);
  } finally {
    close.mockRestore();
  }
});
