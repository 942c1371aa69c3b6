import { table, type ValueOf } from "./field.ts";
import { file } from "./fields.ts";
import { type TlsSettings, tlsSettingFields } from "./tls-settings.ts";

const REQUIRED = "is required: a listener with TLS needs certFile and keyFile";

/** Certificate chain and private key of a listener. The flags are those of the API listener. */
const fields = {
  certFile: file("Certificate chain, PEM.", "certificates", { required: REQUIRED, flag: "tls-cert-file" }),
  keyFile: file("Private key, PEM.", "private key", {
    required: REQUIRED,
    certificate: "certFile",
    flag: "tls-private-key-file",
  }),
};

export const certificateFiles = table(fields);

/** The `tls` of a listener. */
export const listenerTls = table({ ...fields, ...tlsSettingFields });

export type ListenerTls = ValueOf<typeof certificateFiles> & Partial<TlsSettings>;
