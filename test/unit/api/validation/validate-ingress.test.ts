import { describe, expect, it } from "vitest";
import { backend, createErrors, ingressOf, ingressWithPath, strictNames, texts } from "../example-ingress.ts";

const p = "spec.rules[0].http.paths[0]";
const invalid = (field: string, value: string, text: string) =>
  `${field}: Invalid value: "${value}": ${text}`;

/** After pkg/apis/networking/validation/validation_test.go. */
describe("TestValidateIngress", () => {
  it.each([
    ["a default backend alone", ingressOf({ defaultBackend: backend })],
    [
      "a default backend that is a resource",
      ingressOf({ defaultBackend: { resource: { kind: "k", name: "n" } } }),
    ],
    [
      "empty path with ImplementationSpecific",
      ingressWithPath({ path: "", pathType: "ImplementationSpecific" }),
    ],
    ["a rule without http", ingressOf({ rules: [{ host: "a.b" }] })],
    ["a host with a wildcard", ingressWithPath({}, "*.foo.com")],
    ["one label behind the star", ingressWithPath({}, "*.com")],
    [
      "the same host and path twice",
      ingressOf({ rules: [ingressWithPath({}).spec?.rules?.[0], ingressWithPath({}).spec?.rules?.[0]] }),
    ],
    ["a port by name", ingressWithPath({ backend: { service: { name: "web", port: { name: "http" } } } })],
    ["a class that nobody has seen", ingressOf({ defaultBackend: backend, ingressClassName: "x.y" })],
    [
      "a certificate for hosts of no rule",
      ingressOf({ defaultBackend: backend, tls: [{ hosts: ["z"], secretName: "s" }] }),
    ],
  ])("accepts %s", (_, ingress) => {
    expect(createErrors(ingress)).toEqual([]);
  });

  const defaultTo = (given: object) => ingressOf({ defaultBackend: given });
  const service = (fields: object) => ({ service: { name: "web", port: { number: 80 }, ...fields } });
  const d = "spec.defaultBackend";
  const onlyEither = "either `defaultBackend` or `rules` must be specified";
  const name64 = "a".repeat(64);
  const rows: [what: string, ingress: ReturnType<typeof ingressOf>, ...errors: string[]][] = [
    [
      "a bad name",
      ingressOf({ defaultBackend: backend }, { name: "A" }),
      invalid("metadata.name", "A", texts.subdomain),
    ],
    ["nothing", ingressOf({}), `spec: Invalid value: null: ${onlyEither}`],
    ["an empty list of rules", ingressOf({ rules: [] }), `spec: Invalid value: []: ${onlyEither}`],
    [
      "a bad class",
      ingressOf({ defaultBackend: backend, ingressClassName: "A" }),
      invalid("spec.ingressClassName", "A", texts.subdomain),
    ],
    [
      "an empty class",
      ingressOf({ defaultBackend: backend, ingressClassName: "" }),
      invalid("spec.ingressClassName", "", texts.subdomain),
    ],
    ["no paths", ingressOf({ rules: [{ http: { paths: [] } }] }), "spec.rules[0].http.paths: Required value"],
    ["http without paths", ingressOf({ rules: [{ http: {} }] }), "spec.rules[0].http.paths: Required value"],
    [
      "no pathType, and nothing else of that path is read",
      ingressWithPath({ pathType: undefined, path: "x", backend: {} }),
      `${p}.pathType: Required value: pathType must be specified`,
    ],
    [
      "an empty path with Prefix",
      ingressWithPath({ path: "" }),
      invalid(`${p}.path`, "", "must be an absolute path"),
    ],
    [
      "an unknown pathType",
      ingressWithPath({ pathType: "Regex", path: "//" }),
      `${p}.pathType: Unsupported value: "Regex": supported values: "Exact", "ImplementationSpecific", "Prefix"`,
    ],
    [
      "an empty pathType",
      ingressWithPath({ pathType: "" }),
      `${p}.pathType: Unsupported value: "": supported values: "Exact", "ImplementationSpecific", "Prefix"`,
    ],
    [
      "service and resource",
      defaultTo({ ...backend, resource: { kind: "k", name: "n" } }),
      invalid(d, "", "cannot set both resource and service backends"),
    ],
    ["neither of them", defaultTo({}), invalid(d, "", "resource or service backend is required")],
    [
      "neither of them in a path",
      ingressWithPath({ backend: {} }),
      invalid(`${p}.backend`, "", "resource or service backend is required"),
    ],
    ["no name of the service", defaultTo(service({ name: "" })), `${d}.service.name: Required value`],
    [
      "a bad name of the service",
      defaultTo(service({ name: "A" })),
      invalid(`${d}.service.name`, "A", texts.label),
    ],
    [
      "dots in the name of the service",
      defaultTo(service({ name: "a.b" })),
      invalid(`${d}.service.name`, "a.b", "must not contain dots"),
    ],
    [
      "a long name of the service",
      defaultTo(service({ name: name64 })),
      invalid(`${d}.service.name`, name64, "must be no more than 63 characters"),
    ],
    [
      "port name and number",
      defaultTo(service({ port: { name: "a", number: 1 } })),
      invalid(d, "", "cannot set both port name & port number"),
    ],
    [
      "neither name nor number",
      defaultTo(service({ port: {} })),
      `${d}: Required value: port name or number is required`,
    ],
    [
      "no port",
      defaultTo({ service: { name: "web" } }),
      `${d}: Required value: port name or number is required`,
    ],
    [
      "a bad name of the port",
      defaultTo(service({ port: { name: "-1--0-0123456789" } })),
      ...[
        "must be no more than 15 characters",
        "must contain at least one letter (a-z)",
        "must not contain consecutive hyphens",
        "must not begin or end with a hyphen",
      ].map((text) => invalid(`${d}.service.port.name`, "-1--0-0123456789", text)),
    ],
    [
      "an upper case name of the port",
      defaultTo(service({ port: { name: "aB" } })),
      invalid(
        `${d}.service.port.name`,
        "aB",
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
      ),
    ],
    [
      "a port above the range",
      defaultTo(service({ port: { number: 65_536 } })),
      `${d}.service.port.number: Invalid value: 65536: ${texts.port}`,
    ],
    [
      "a negative port",
      defaultTo(service({ port: { number: -1 } })),
      `${d}.service.port.number: Invalid value: -1: ${texts.port}`,
    ],
    [
      "a resource of a bad group",
      defaultTo({ resource: { apiGroup: "A", kind: "k", name: "n" } }),
      invalid(`${d}.resource.apiGroup`, "A", texts.subdomain),
    ],
    [
      "a resource of an empty group",
      defaultTo({ resource: { apiGroup: "", kind: "k", name: "n" } }),
      invalid(`${d}.resource.apiGroup`, "", texts.subdomain),
    ],
    [
      "a resource without kind and name",
      defaultTo({ resource: {} }),
      `${d}.resource.kind: Required value`,
      `${d}.resource.name: Required value`,
    ],
    [
      "a resource whose kind is no path segment",
      defaultTo({ resource: { kind: "a/b", name: ".." } }),
      invalid(`${d}.resource.kind`, "a/b", "may not contain '/'"),
      invalid(`${d}.resource.name`, "..", "may not be '..'"),
    ],
    [
      "a resource whose name is no path segment",
      defaultTo({ resource: { kind: ".", name: "a%b" } }),
      invalid(`${d}.resource.kind`, ".", "may not be '.'"),
      invalid(`${d}.resource.name`, "a%b", "may not contain '%'"),
    ],
  ];
  it.each(rows)("refuses %s", (_, ingress, ...errors) => {
    expect(createErrors(ingress)).toEqual(errors);
  });

  it("a service's name may begin with a digit, where RelaxedServiceNameValidation is on", () => {
    const ingress = defaultTo(service({ name: "1a" }));
    expect(createErrors(ingress)).toEqual([]);
    expect(createErrors(ingress, strictNames)).toEqual([invalid(`${d}.service.name`, "1a", texts.dns1035)]);
  });

  it.each([
    ["foobar:80", [texts.subdomain]],
    ["127.0.0.1", ["must be a DNS name, not an IP address"]],
    ["127.000.000.001", ["must be a DNS name, not an IP address"]],
    ["::1", ["must be a DNS name, not an IP address", texts.subdomain]],
    ["Foo.com", [texts.subdomain]],
    ["foo.com.", [texts.subdomain]],
    ["foo_bar.com", [texts.subdomain]],
    ["*", [texts.wildcard]],
    ["*.*.foo.com", [texts.wildcard]],
    ["f*.foo.com", [texts.wildcard]],
    ["*foo.com", [texts.wildcard]],
    ["foo.*.com", [texts.wildcard]],
    ["*.Foo.com", [texts.wildcard]],
    ["*.foo.com.", [texts.wildcard]],
    [`${"a".repeat(254)}`, ["must be no more than 253 characters"]],
    [`*.${"a".repeat(252)}`, ["must be no more than 253 characters"]],
  ])("refuses the host %s", (host, problems) => {
    expect(createErrors(ingressWithPath({}, host))).toEqual(
      problems.map((text) => invalid("spec.rules[0].host", host, text)),
    );
  });

  it("says everything that is wrong, in Kubernetes' order", () => {
    const spec = {
      ...ingressWithPath({ path: "x" }, "*").spec,
      defaultBackend: {},
      tls: [{ hosts: ["*"] }],
      ingressClassName: "",
    };
    expect(createErrors(ingressOf(spec)).map((text) => text.split(": ")[0])).toEqual([
      "spec.defaultBackend",
      "spec.rules[0].host",
      `${p}.path`,
      "spec.tls[0].hosts[0]",
      "spec.ingressClassName",
    ]);
  });
});

describe("TestValidateIngressRuleValue", () => {
  it.each(["/", "/foo", "/foo/", "/a.b/..c/.d", "/a%20b", "/a%2Gb"])("%s is good for every type", (path) => {
    for (const pathType of ["Exact", "Prefix", "ImplementationSpecific"]) {
      expect(createErrors(ingressWithPath({ path, pathType }))).toEqual([]);
    }
  });

  it.each([
    ["foo", ["must be an absolute path"]],
    ["//", ["must not contain '//'"]],
    ["/foo//bar", ["must not contain '//'"]],
    ["/./", ["must not contain '/./'"]],
    ["/foo/../bar", ["must not contain '/../'"]],
    ["/foo%2fbar", ["must not contain '%2f'"]],
    ["/foo%2Fbar", ["must not contain '%2F'"]],
    ["/foo/..", ["cannot end with '/..'"]],
    ["/foo/.", ["cannot end with '/.'"]],
    [
      "//./../%2f%2F/..",
      [
        "must not contain '//'",
        "must not contain '/./'",
        "must not contain '/../'",
        "must not contain '%2f'",
        "must not contain '%2F'",
        "cannot end with '/..'",
      ],
    ],
  ])("%s is refused for Exact and Prefix", (path, problems) => {
    for (const pathType of ["Exact", "Prefix"]) {
      expect(createErrors(ingressWithPath({ path, pathType }))).toEqual(
        problems.map((text) => invalid(`${p}.path`, path, text)),
      );
    }
  });

  it("ImplementationSpecific takes anything that begins with a slash", () => {
    const errorsOf = (path: string) =>
      createErrors(ingressWithPath({ path, pathType: "ImplementationSpecific" }));
    expect(["//", "/./", "/../", "/%2f", "/..", "/([a-z]+)*$"].flatMap(errorsOf)).toEqual([]);
    expect(errorsOf("foo")).toEqual([invalid(`${p}.path`, "foo", "must be an absolute path")]);
  });
});

describe("TestValidateIngressTLS", () => {
  const errorsOf = (tls: object[]) => createErrors(ingressOf({ defaultBackend: backend, tls }));
  it.each([
    [{ hosts: ["foo.com", "*.foo.com", "127.0.0.1"], secretName: "a.b" }],
    [{ secretName: "" }],
    [{ hosts: [] }],
  ])("accepts %j", (entry) => {
    expect(errorsOf([entry])).toEqual([]);
  });

  it("refuses wildcards in the wrong place, names that are none, and bad names of secrets", () => {
    expect(errorsOf([{}, { hosts: ["a", "foo.*.com", "foo:80"], secretName: "name/path" }])).toEqual([
      invalid("spec.tls[1].hosts[1]", "foo.*.com", texts.wildcard),
      invalid("spec.tls[1].hosts[2]", "foo:80", texts.subdomain),
      invalid("spec.tls[1].secretName", "name/path", texts.subdomain),
    ]);
  });

  it("TestValidateEmptyIngressTLS", () => {
    expect(errorsOf([{}])).toEqual([]);
    expect(errorsOf([{ hosts: [] }])).toEqual([]);
  });
});

describe("TestValidateIngressCreate", () => {
  const annotated = (annotation: string, spec: object = {}) =>
    ingressOf(
      { defaultBackend: backend, ...spec },
      { annotations: { "kubernetes.io/ingress.class": annotation } },
    );
  it("class by field, by annotation, or by both alike", () => {
    expect(createErrors(ingressOf({ defaultBackend: backend, ingressClassName: "foo" }))).toEqual([]);
    expect(createErrors(annotated("foo"))).toEqual([]);
    expect(createErrors(annotated("foo", { ingressClassName: "foo" }))).toEqual([]);
  });

  it("class by field and annotation that differ: refused, at a path without metadata", () => {
    expect(createErrors(annotated("foo", { ingressClassName: "bar" }))).toEqual([
      invalid(
        "annotations.kubernetes.io/ingress.class",
        "foo",
        "must match `ingressClassName` when both are specified",
      ),
    ]);
  });

  it("regular expressions only with ImplementationSpecific", () => {
    const path = "/([a-z0-9]*)[";
    expect(createErrors(ingressWithPath({ path, pathType: "ImplementationSpecific" }))).toEqual([]);
    expect(createErrors(ingressWithPath({ path: "([a-z0-9]*)" }))).toEqual([
      invalid(`${p}.path`, "([a-z0-9]*)", "must be an absolute path"),
    ]);
  });

  it("a bad path under a wildcard host is refused too", () => {
    expect(createErrors(ingressWithPath({ path: "foo" }, "*.bar.com"))).toEqual([
      invalid(`${p}.path`, "foo", "must be an absolute path"),
    ]);
  });
});
