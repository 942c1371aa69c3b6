import { table, type ValueOf } from "./field.ts";
import { file } from "./fields.ts";

const REQUIRED = "is required: a listener with TLS needs certFile and keyFile";

/** Certificate chain and private key of a listener. The flags are those of the API listener. */
export const certificateFiles = table({
  certFile: file("Certificate chain, PEM.", "certificates", { required: REQUIRED, flag: "tls-cert-file" }),
  keyFile: file("Private key, PEM.", "private key", {
    required: REQUIRED,
    certificate: "certFile",
    flag: "tls-private-key-file",
  }),
});

export type ListenerTls = ValueOf<typeof certificateFiles>;
