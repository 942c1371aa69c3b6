import {
  type ConnectError,
  dial,
  execPath,
  type Target,
  type UpgradedConnection,
} from "../../packages/client/src/index.ts";
import { proofOf } from "../../packages/client/src/sessions/resuming-client.ts";
import {
  type Agreement,
  encodeOffer,
  encodeResumption,
  parseAgreement,
  RESUME_HEADER,
  RESUME_PROTOCOL,
} from "../../protocols/resume/index.ts";

export const EXEC_PATH = "/api/v1/namespaces/default/pods/web/exec";

/** The values of a resumption. By default the proof is right, and nothing has been received. */
export interface Claim {
  readonly attempt: number;
  readonly received?: number;
  readonly proof?: string;
}

/**
 * A session of `default/web` that the server made resumable, whose client does not return by
 * itself.
 */
export async function openResumable(
  target: Target,
  command: readonly string[],
): Promise<{ readonly connection: UpgradedConnection; readonly agreement: Agreement }> {
  const pod = { namespace: "default", pod: "web", container: "main" };
  const connection = await dial(target, {
    path: execPath(pod, command)({ stdin: true, stdout: true, stderr: false, tty: false }),
    transport: "websocket",
    protocols: ["v5.channel.k8s.io", RESUME_PROTOCOL],
    headers: [[RESUME_HEADER, encodeOffer({ windowBytes: 1024 * 1024 })]],
  });
  const [, value = ""] = connection.responseHeaders.find(([name]) => name === RESUME_HEADER) ?? [];
  const agreement = parseAgreement(value);
  if (connection.protocol !== RESUME_PROTOCOL || agreement === undefined) throw new Error("no agreement");
  return { connection, agreement };
}

/** One attempt to resume it. Rejects with the ConnectError that says why it failed. */
export function resumeOnce(
  target: Target,
  { session, key }: Pick<Agreement, "session" | "key">,
  claim: Claim,
  path: string = EXEC_PATH,
): Promise<UpgradedConnection> {
  const signed = { session, received: 0, ...claim };
  const proof = claim.proof ?? proofOf(key, signed);
  return dial(target, {
    path,
    transport: "websocket",
    protocols: [RESUME_PROTOCOL],
    headers: [[RESUME_HEADER, encodeResumption({ ...signed, proof })]],
  });
}

/** `STATUS REASON MESSAGE` of the attempt's refusal, or "resumed". */
export function refusalOf(attempt: Promise<unknown>): Promise<string> {
  return attempt.then(
    () => "resumed",
    ({ httpStatus, apiStatus }: ConnectError) =>
      `${httpStatus} ${apiStatus?.reason ?? ""} ${apiStatus?.message}`,
  );
}
