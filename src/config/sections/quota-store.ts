import { withoutUserinfo } from "@sluice/client/internal/config/configuration-error";
import { checked, table } from "@sluice/client/internal/config/field";
import { choice, file, string } from "@sluice/client/internal/config/fields";
import {
  checkUpstreamTrust,
  upstreamTrustFields,
} from "@sluice/client/internal/config/sections/upstream-trust";
import { duration } from "../number-fields.ts";

const fields = table({
  url: string("`redis://host:port`, or `rediss://` for TLS; a path is the number of a database.", {
    required: 'is required, such as "rediss://valkey.example:6379"',
    check: checkUrl,
  }),
  username: string("ACL user. Absent: the default user."),
  passwordFile: file("The password; read for each connection.", "text"),
  ...upstreamTrustFields(),
  keyPrefix: string("Prefix of key names. Gateways that count separately need different prefixes.", {
    default: "sluice",
    check: (value) =>
      /^[\w.:-]{1,100}$/.test(value) ? undefined : "must be up to 100 letters, digits, dots, dashes, colons",
  }),
  onFailure: choice(
    "While the store is unreachable, with `allow` each replica counts its own sessions; with `deny` new sessions get 503.",
    ["allow", "deny"],
    { default: "allow" },
  ),
  lease: duration(
    "How long a session counts after its last renewal; replicas renew it three times in this time. Past it its place is free.",
    { default: "1m", from: "1s", to: "1h" },
  ),
  commandTimeout: duration("One command. Past it the store counts as unreachable, and `onFailure` decides.", {
    default: "1s",
    from: "10ms",
    to: "30s",
  }),
});

/** The store that counts the sessions of all replicas. */
export const quotaStore = checked(fields, (settings, section) => {
  checkUpstreamTrust(settings, section);
  if (settings.username !== undefined && settings.passwordFile === undefined)
    section.problem("passwordFile", "must be given with username");
  if (settings.commandTimeoutMs * 4 > settings.leaseMs)
    section.problem("commandTimeout", "must be at most a quarter of lease");
});

function checkUrl(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^rediss?:$/.test(url.protocol) || url.hostname === "")
    return `must be a redis or rediss URL, got ${JSON.stringify(withoutUserinfo(value).slice(0, 80))}`;
  if (url.username !== "" || url.password !== "") return "must not hold credentials: see passwordFile";
  return /^\/?\d{0,5}$/.test(url.pathname) && url.search === "" && url.hash === ""
    ? undefined
    : "must be a host, a port and the number of a database";
}
