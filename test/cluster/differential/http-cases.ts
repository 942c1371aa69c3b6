import type { User } from "../doors.ts";
import type { HttpExchange } from "./raw-exchange.ts";

/** One request of one user. `$NAME` is a name that only this way to the cluster uses. */
export interface HttpCase extends HttpExchange {
  readonly user: User;
}

const get = (user: User, ...paths: readonly string[]): HttpCase[] =>
  paths.map((path) => ({ user, method: "GET", path }));

const PODS = "/api/v1/namespaces/default/pods";

export const httpCases: readonly HttpCase[] = [
  ...get("admin", `${PODS}/web`, `${PODS}/nosuch`, "/version", `${PODS}/web/exec?command=id`, "/nosuch"),
  ...get("none", `${PODS}/web`, `${PODS}/web/exec?command=id`),
];
