import type { User } from "../doors.ts";

/** Commands of kubectl that one user runs, one after the other. `$NAME` is a name that only this way to the cluster uses. */
export interface KubectlCase {
  readonly user: User;
  /** Separated by ` ; `; words as a shell splits them, quotes included. */
  readonly commands: string;
  readonly input?: string;
}

const as = (user: User, ...lines: readonly string[]): KubectlCase[] =>
  lines.map((commands) => ({ user, commands }));

export const kubectlCases: readonly KubectlCase[] = [
  ...as(
    "admin",
    "get pods -o name",
    "get pod web -o yaml",
    "get pod nosuch",
    "exec web -c main -- echo hello",
    "exec web -c main -- sh -c 'exit 7'",
    "logs finite --tail=3",
    "auth can-i create pods/exec",
    "create configmap $NAME --from-literal=a=b ; get configmap $NAME -o json ; delete configmap $NAME",
  ),
  ...as("viewer", "exec web -c main -- id", "auth can-i --list"),
];
