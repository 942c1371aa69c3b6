import {
  ConfigurationError,
  type ConfigurationProblem,
} from "@sluice/client/internal/config/configuration-error";
import { checked, table } from "@sluice/client/internal/config/field";
import { boolean, choice, constant } from "@sluice/client/internal/config/fields";
import { Section } from "@sluice/client/internal/config/section";
import { EMPTY_DOCUMENT, parseYamlDocuments } from "@sluice/client/internal/config/yaml-documents";
import { checkIssuers, type JwtIssuer, jwtAuthenticator, refused } from "./jwt-authenticators.ts";
import { optionalSection, sections } from "./section-fields.ts";

const GROUP = "apiserver.config.k8s.io";

const anonymous = checked(
  table({
    enabled: boolean("Whether requests without credentials are `system:anonymous`."),
    conditions: refused("requests without credentials are allowed on every path or on none"),
  }),
  ({ enabled }, at) => {
    if (enabled === true)
      at.problem("enabled", "is set by authentication.anonymous of the gateway, or --anonymous-auth");
  },
);

const document = checked(
  table({
    apiVersion: choice("The version.", [`${GROUP}/v1`, `${GROUP}/v1beta1`, `${GROUP}/v1alpha1`], {
      required: "is required",
    }),
    kind: constant("AuthenticationConfiguration"),
    jwt: sections("Issuers of tokens.", jwtAuthenticator),
    anonymous: optionalSection("Requests without credentials.", anonymous),
  }),
  ({ jwt }, at) => checkIssuers(jwt, at),
);

/**
 * Reads a file for kube-apiserver's --authentication-config. Throws ConfigurationError with all of
 * its problems.
 */
export function parseAuthenticationFile(text: string, fileName: string): readonly JwtIssuer[] {
  const [first = EMPTY_DOCUMENT] = parseYamlDocuments(text, fileName);
  const problems: ConfigurationProblem[] = [];
  const { jwt } = document.read(new Section({ fileName, document: first, problems }, [], first.value));
  if (problems.length > 0) throw new ConfigurationError(problems);
  return jwt;
}
