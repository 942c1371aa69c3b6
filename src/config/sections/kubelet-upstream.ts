import { checked, table, type ValueOf } from "@sluice/client/internal/config/field";
import { file, string } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import {
  checkUpstreamTrust,
  upstreamTrustFields,
} from "@sluice/client/internal/config/sections/upstream-trust";
import { ORIGIN_URL } from "./upstream-api-server.ts";

const fields = table({
  url: string("Scheme, host and port of the kubelet.", {
    ...ORIGIN_URL,
    required: 'is required, such as "https://127.0.0.1:10260"',
  }),
  serverName: string("Name that the kubelet's certificate must carry. Absent: the host of `url`.", {
    flag: "kubelet-upstream-server-name",
  }),
  ...upstreamTrustFields(),
  tokenFile: file(
    "Bearer token for the kubelet, instead of a client certificate; read for every request.",
    "text",
  ),
});

/** The kubelet behind a kubelet listener; it gets the requests that the listener does not serve. */
export const kubeletUpstream = checked(fields, checkKubeletUpstream);

export type KubeletUpstreamSettings = ValueOf<typeof kubeletUpstream>;

/** Callers' credentials never reach the kubelet, so an https kubelet needs Sluice's own. */
function checkKubeletUpstream(values: ValueOf<typeof fields>, section: Section): void {
  checkUpstreamTrust(values, section);
  const { url, tokenFile, clientCertificateFile } = values;
  const given = [tokenFile, clientCertificateFile].filter((path) => path !== undefined).length;
  if (url.startsWith("https:") && given !== 1)
    section.problem("url", "needs one of clientCertificateFile and tokenFile: the credentials of Sluice");
  if (url.startsWith("http:") && tokenFile !== undefined)
    section.problem("tokenFile", "must not be sent in clear: url has to be https");
}
