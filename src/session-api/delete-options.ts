import { isRecord } from "@sluice/client/internal/api/status-body";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";

/** The options of a DELETE, from its body and its query. */
export interface DeleteOptions {
  readonly isDryRun: boolean;
  /** The uid that the object must have. */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/**
 * Reads a DeleteOptions. Grace periods and propagation have no meaning here and are ignored. Throws
 * StatusError 400.
 */
export function readDeleteOptions(body: unknown, query: URLSearchParams): DeleteOptions {
  if (body !== undefined && (!isRecord(body) || (body.kind ?? "DeleteOptions") !== "DeleteOptions"))
    throw refused("the body is not a DeleteOptions");
  const { dryRun = [], preconditions } = body ?? {};
  const modes = [...query.getAll("dryRun").filter((mode) => mode !== ""), ...listOf(dryRun)];
  for (const mode of modes)
    if (mode !== "All") throw refused(`Unsupported value: ${JSON.stringify(mode)}: supported values: "All"`);
  const { uid, resourceVersion } = isRecord(preconditions) ? preconditions : {};
  return {
    isDryRun: modes.length > 0,
    uid: typeof uid === "string" ? uid : undefined,
    resourceVersion: typeof resourceVersion === "string" ? resourceVersion : undefined,
  };
}

function listOf(value: unknown): readonly unknown[] {
  if (value === null) return [];
  if (Array.isArray(value)) return value;
  throw refused("dryRun must be a list");
}

function refused(problem: string): Error {
  return WIRE_ERRORS["delete-options"].streaming({ problem });
}
