import type { UserInfo } from "../../access/user-info.ts";
import type { ResumableRunContext } from "../context.ts";
import type { Downstream, IncomingStreaming, PendingClient } from "../incoming-request.ts";
import type { Admission, Leg } from "../leg.ts";
import { type ResumableSessions, resumptionIn } from "../resumable/resumable-sessions.ts";
import { runSession } from "../run-session.ts";
import { resumeSession } from "./resume-session.ts";

/** A leg whose sessions may outlive their clients' connections: its `downstream` is `resumableClient`. */
export interface ResumableLeg<A extends Admission = Admission> extends Leg<A> {
  /** Authenticates the user of a resumption, and authorizes sessions at this path. Throws StatusError. */
  authorizeResumption(incoming: IncomingStreaming): Promise<UserInfo>;
}

/** Runs a session, or resumes the one that the request names. Throws as `runSession` and `resumeSession`. */
export async function runResumable<A extends Admission>(
  leg: ResumableLeg<A>,
  incoming: IncomingStreaming,
  client: PendingClient,
  gateway: ResumableRunContext,
): Promise<void> {
  const resumption = resumptionIn(incoming.headers);
  if (resumption === undefined) return await runSession(leg, incoming, client, gateway);
  const user = await leg.authorizeResumption(incoming);
  await resumeSession(resumption, user, incoming, client, gateway);
}

/**
 * The client, with a connection that outlives its own if it asked for that and there is room.
 * `reauthorize`: see `ResumableSessions.agree`.
 */
export function resumableClient(
  client: Downstream,
  admission: Admission,
  resumable: ResumableSessions | undefined,
  reauthorize?: (user: UserInfo) => void,
): Downstream {
  if (resumable === undefined) return client;
  return {
    signal: client.signal,
    refuse: (answer) => client.refuse(answer),
    accept: (answer, begin) => {
      const agreed = resumable.agree(admission, answer.headers, (user) => {
        reauthorize?.(user);
        admission.standing?.renew(user);
      });
      if (agreed === undefined) client.accept(answer, begin);
      else
        client.accept({ ...answer, headers: agreed.headers }, (connection, status) =>
          begin(agreed.start(connection), status),
        );
    },
  };
}
