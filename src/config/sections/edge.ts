import { checkNetwork } from "@sluice/client/internal/config/address-list";
import { withoutUserinfo } from "@sluice/client/internal/config/configuration-error";
import { table } from "@sluice/client/internal/config/field";
import { strings } from "../section-fields.ts";

/** Trust before authentication: web origins and proxies. */
export const edge = table({
  allowedOrigins: strings(
    "Origins of web pages that may open sessions with the browser's certificate or cookies, besides the gateway's own.",
    { check: checkOrigin },
  ),
  trustedProxies: strings(
    "Addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto count, and whose connections are not limited.",
    { check: checkNetwork },
  ),
});

function checkOrigin(value: string): string | undefined {
  const isOrigin = /^[a-z][a-z0-9+.-]*:\/\/[^/*?#@]+$/.test(value) && URL.canParse(value);
  return isOrigin
    ? undefined
    : `must be an origin such as "https://console.example.com", got ${JSON.stringify(withoutUserinfo(value))}`;
}
