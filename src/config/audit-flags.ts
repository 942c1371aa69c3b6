import { type Audit, type AuditLogFile, defaultAuditLogFile, STANDARD_OUTPUT } from "./audit.ts";

/** kube-apiserver's flags about the audit log. */
export const AUDIT_FLAGS = [
  "audit-policy-file",
  "audit-log-path",
  "audit-log-maxsize",
  "audit-log-maxage",
  "audit-log-maxbackup",
] as const;
export type AuditFlag = (typeof AUDIT_FLAGS)[number];

export interface AuditFlagReader {
  text(flag: AuditFlag): string | undefined;
  file(flag: AuditFlag): string | undefined;
  refuse(flag: AuditFlag, message: string): void;
}

const MEGABYTE = 1024 * 1024;

export function mergeAuditFlags(file: Audit, flags: AuditFlagReader): Audit {
  return {
    ...file,
    policyFile: flags.file("audit-policy-file") ?? file.policyFile,
    log: logOf(file.log, flags),
  };
}

function logOf(file: AuditLogFile | undefined, flags: AuditFlagReader): AuditLogFile | undefined {
  const given = flags.text("audit-log-path");
  if (given === undefined && file === undefined) return undefined;
  const { path, maxBytes, maxAgeDays, maxBackups } = file ?? { path: undefined, ...defaultAuditLogFile };
  const megabytes = numberOf("audit-log-maxsize", flags);
  return {
    path: given === undefined ? path : given === STANDARD_OUTPUT ? undefined : flags.file("audit-log-path"),
    // 0 is kube-apiserver's way to say the default.
    maxBytes:
      megabytes === undefined
        ? maxBytes
        : megabytes === 0
          ? defaultAuditLogFile.maxBytes
          : megabytes * MEGABYTE,
    maxAgeDays: numberOf("audit-log-maxage", flags) ?? maxAgeDays,
    maxBackups: numberOf("audit-log-maxbackup", flags) ?? maxBackups,
  };
}

function numberOf(flag: AuditFlag, flags: AuditFlagReader): number | undefined {
  const value = flags.text(flag);
  if (value !== undefined && !/^\d{1,6}$/.test(value)) {
    flags.refuse(flag, `must be a whole number, got ${JSON.stringify(value)}`);
    return undefined;
  }
  return value === undefined ? undefined : Number(value);
}
