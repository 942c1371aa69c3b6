import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { UserInfo } from "../../src/access/user-info.ts";
import type { RbacObject } from "../../src/api/rbac-objects.ts";
import { goPeer } from "./go-peers.ts";

/** A question in the form that kube-access reads (test/real/access-oracle). */
export interface AccessQuestion {
  readonly Kind:
    | "policy"
    | "request"
    | "authorize"
    | "impersonate"
    | "labels"
    | "fields"
    | "quantity"
    | "csv"
    | "authentication";
  readonly Method?: string;
  readonly Target?: string;
  readonly User?: { Name: string; UID: string; Groups: readonly string[]; Extra: UserInfo["extra"] };
  readonly Headers?: readonly (readonly [string, string])[];
  readonly Constrained?: boolean;
  readonly Text?: string;
  readonly Set?: Readonly<Record<string, string>>;
  readonly Roles?: readonly RbacObject[];
  readonly ClusterRoles?: readonly RbacObject[];
  readonly RoleBindings?: readonly RbacObject[];
  readonly ClusterRoleBindings?: readonly RbacObject[];
}

export interface AccessAnswer {
  readonly error?: string;
  readonly isResourceRequest: boolean;
  readonly verb: string;
  readonly path: string;
  readonly apiGroup: string;
  readonly apiVersion: string;
  readonly namespace: string;
  readonly resource: string;
  readonly subresource: string;
  readonly name: string;
  readonly allowed: boolean;
  readonly status?: number;
  readonly message?: string;
  readonly matches?: boolean;
  readonly value?: string;
  readonly records?: readonly (readonly string[])[];
  readonly user?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: UserInfo["extra"];
}

/**
 * The answers of Kubernetes' own code, in the order of the questions. A `policy` applies to the
 * questions after it.
 */
export async function askKubernetes(questions: readonly AccessQuestion[]): Promise<readonly AccessAnswer[]> {
  const child = spawn(goPeer("access-oracle", "kube-access"), { stdio: ["pipe", "pipe", "ignore"] });
  const answers: AccessAnswer[] = [];
  createInterface(child.stdout).on("line", (line) => void answers.push(JSON.parse(line) as AccessAnswer));
  child.stdin.end(questions.map((question) => `${JSON.stringify(question)}\n`).join(""));
  await once(child, "close");
  return answers;
}

export function asSubject({ name, uid, groups, extra }: UserInfo): NonNullable<AccessQuestion["User"]> {
  return { Name: name, UID: uid, Groups: groups, Extra: extra };
}

export function policyQuestion(objects: readonly RbacObject[]): AccessQuestion {
  const of = (wanted: RbacObject["kind"]) => objects.filter(({ kind }) => kind === wanted);
  return {
    Kind: "policy",
    Roles: of("Role"),
    ClusterRoles: of("ClusterRole"),
    RoleBindings: of("RoleBinding"),
    ClusterRoleBindings: of("ClusterRoleBinding"),
  };
}
