import fc from "fast-check";
import { expect, it } from "vitest";
import { ConfigurationError } from "../../packages/client/src/config/configuration-error.ts";
import { parseAuthenticationFile } from "../../src/config/named-files.ts";
import { askKubernetes } from "../support/access-oracle.ts";
import { isGoPeerBuilt } from "../support/go-peers.ts";
import { describeReal } from "../support/real-parts.ts";
import { issueCertificate } from "../support/test-certificates.ts";

const CASES = 5_000;
const SEED = 28;

/** Mostly good, so that whole files are valid, too. */
const mostly = <Value>(good: Value, ...others: readonly Value[]): fc.Arbitrary<Value> =>
  fc.oneof(
    { weight: 4 * others.length, arbitrary: fc.constant(good) },
    ...others.map((other) => fc.constant(other)),
  );

const url = fc.constantFrom("https://a", "https://b/path", "https://c/", "https://d", "https://e");
const badUrl = fc.constantFrom(
  "http://a",
  "https://u:p@a",
  "https://u@a",
  "https://a?b",
  "https://a#b",
  "ftp://a",
  "a",
);
const anyUrl = fc.oneof({ weight: 9, arbitrary: url }, badUrl);

function entries(certificate: string): fc.Arbitrary<object> {
  const issuer = fc.record(
    {
      url: anyUrl,
      discoveryURL: fc.oneof({ weight: 9, arbitrary: url.map((text) => `${text}/openid`) }, anyUrl),
      certificateAuthority: mostly(certificate, "none", certificate.slice(0, 200)),
      audiences: mostly<unknown>(["a"], [], ["a", "b"], ["a", "a"], [""], "a", null),
      audienceMatchPolicy: mostly<unknown>("MatchAny", "MatchAll", null, 5),
      noSuchField: fc.constant(1),
    },
    { requiredKeys: ["url", "audiences", "audienceMatchPolicy"] },
  );
  const claim = fc.record({
    claim: fc.constantFrom("sub", "email"),
    prefix: mostly<unknown>("", "p:", 5, null),
  });
  const mapping = fc.oneof(
    { weight: 12, arbitrary: claim },
    ...[{}, { prefix: "p" }, { claim: "sub" }, null].map((value) => fc.constant(value)),
  );
  const rule = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        claim: fc.constantFrom("a", "b", "c"),
        requiredValue: mostly<unknown>("x", "", null, 1),
      }),
    },
    ...[{}, { requiredValue: "x" }, { claim: "d", message: "m" }, { claim: "e" }].map((value) =>
      fc.constant(value),
    ),
  );
  const claimMappings = fc.record(
    { username: mapping, groups: mapping, uid: mostly<unknown>({ claim: "oid" }, {}, null, { claim: 5 }) },
    { requiredKeys: ["username"] },
  );
  return fc.record(
    {
      issuer: issuer.map(({ noSuchField, ...fields }) =>
        fields.url === "a" ? { ...fields, noSuchField } : fields,
      ),
      claimMappings,
      claimValidationRules: fc.array(rule, { maxLength: 3 }),
    },
    { requiredKeys: ["issuer", "claimMappings"] },
  );
}

function refusal(text: string): string | undefined {
  try {
    parseAuthenticationFile(text, "auth.yaml");
    return undefined;
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    throw error;
  }
}

describeReal("go", "issuers in the file of --authentication-config", () => {
  it.skipIf(!isGoPeerBuilt("access-oracle", "kube-access"))(
    "are taken and refused as by kube-apiserver's own code",
    { timeout: 120_000 },
    async () => {
      const { cert } = await issueCertificate({ commonName: "issuer" });
      const files = fc.array(entries(cert), { maxLength: 3 }).map((jwt) => {
        const versions = ["v1", "v1beta1"];
        const version = versions[jwt.length % 2] ?? "v1";
        return { apiVersion: `apiserver.config.k8s.io/${version}`, kind: "AuthenticationConfiguration", jwt };
      });
      const texts = fc.sample(files, { seed: SEED, numRuns: CASES }).map((file) => JSON.stringify(file));
      const answers = await askKubernetes(texts.map((Text) => ({ Kind: "authentication", Text })));
      const wrong = texts.flatMap((text, at) => {
        const [ours, theirs] = [refusal(text), answers[at]?.error];
        return (ours === undefined) === (theirs === undefined) ? [] : [{ text, ours, theirs }];
      });
      expect(wrong.slice(0, 3)).toEqual([]);
      const taken = answers.filter(({ error }) => error === undefined).length;
      expect(taken).toBeGreaterThan(CASES / 10);
      expect(taken).toBeLessThan(CASES * 0.9);
    },
  );
});
