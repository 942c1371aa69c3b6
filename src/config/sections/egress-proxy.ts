import { checked, table, type ValueOf } from "@sluice/client/internal/config/field";
import { file, string } from "@sluice/client/internal/config/fields";
import {
  checkUpstreamTrust,
  upstreamTrustFields,
} from "@sluice/client/internal/config/sections/upstream-trust";

/** The HTTP CONNECT proxy to the nodes; EgressSelectorConfiguration's HTTPConnect transport. */
export const egressProxy = checked(
  table({
    url: string("`http://host:port`, `https://host:port` or `unix:///path`.", {
      required: 'is required, such as "https://konnectivity:8131" or "unix:///run/proxy.sock"',
      check: checkProxyUrl,
    }),
    ...upstreamTrustFields(),
    credentialsFile: file(
      "One line `user:password`, sent as Basic credentials; read again at each dial.",
      "text",
    ),
  }),
  checkUpstreamTrust,
);

export type EgressProxySettings = ValueOf<typeof egressProxy>;

function checkProxyUrl(value: string): string | undefined {
  const shape = "must be http://host:port, https://host:port or unix:///path";
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined) return shape;
  // People share configuration files; credentials belong into a secret file.
  if (url.username !== "" || url.password !== "") return "must not hold credentials; use credentialsFile";
  if (url.protocol === "unix:") {
    return url.hostname === "" && url.pathname.length > 1 && url.search + url.hash === "" ? undefined : shape;
  }
  const isPlain = url.pathname === "/" && url.search === "" && url.hash === "";
  return (url.protocol === "http:" || url.protocol === "https:") && isPlain ? undefined : shape;
}
