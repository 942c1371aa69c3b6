import type { Section } from "./section.ts";

/** Certificate chain and private key of a listener, PEM files. */
export interface ListenerTls {
  readonly certFile: string;
  readonly keyFile: string;
}

/** The two files of the section `name`; undefined when there is none. */
export function readCertificateFiles(parent: Section, name: string): ListenerTls | undefined {
  if (!parent.has(name)) return undefined;
  const section = parent.section(name);
  const certFile = section.optionalFile("certFile", "certificates");
  const keyFile = section.optionalFile("keyFile", "private key", certFile);
  for (const [field, file] of Object.entries({ certFile, keyFile })) {
    if (file === undefined && !section.has(field)) {
      section.problem(field, "is required: a listener with TLS needs certFile and keyFile");
    }
  }
  section.finish();
  return certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile };
}
