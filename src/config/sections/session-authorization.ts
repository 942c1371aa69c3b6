import { table, type ValueOf } from "@sluice/client/internal/config/field";
import { choice } from "@sluice/client/internal/config/fields";
import { duration } from "../number-fields.ts";
import { section } from "../section-fields.ts";
import { LONGEST_WAIT } from "./timeouts.ts";

const portForward = table({
  connections: choice(
    "`shared`: a port-forward has one connection to its node, as in Kubernetes. `separate`: each forwarded connection has its own, 64 of a forward at most, so that one that stalls or fails leaves the others alone, and kubectl gets no error text, at which it would end.",
    ["shared", "separate"],
    { default: "shared" },
  ),
});

/** How long a running session stays its user's right. */
export const sessionAuthorization = table({
  reauthorizeInterval: duration(
    "How often each running session is authorized again, by the checks of its start; a refusal ends it. `0s`: never. An authorizer that cannot decide ends none; a webhook's cached answers count.",
    { default: "30s", from: "0s", to: LONGEST_WAIT },
  ),
  credentialExpiry: choice(
    "Whether a session ends when the credentials it began with, or was last resumed with, expire: client certificates, OIDC tokens, JWTs of TokenReviews.",
    ["end", "ignore"],
    { default: "end" },
  ),
  portForward: section("How port-forwards are carried.", portForward),
});

export type SessionAuthorization = ValueOf<typeof sessionAuthorization>;
