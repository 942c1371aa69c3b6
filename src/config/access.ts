import { notAmong, type Section } from "./section.ts";

export interface Authentication {
  /** CSV of `token,user,uid,"group1,group2"`, as kube-apiserver's --token-auth-file. Absent: nobody has a token. */
  readonly tokenAuthFile: string | undefined;
}

export const AUTHORIZATION_MODES = ["AlwaysAllow"] as const;
export type AuthorizationMode = (typeof AUTHORIZATION_MODES)[number];

export interface Authorization {
  /** Asked in order, as kube-apiserver does. Never empty. */
  readonly modes: readonly AuthorizationMode[];
}

export const defaultAuthorizationModes: readonly AuthorizationMode[] = ["AlwaysAllow"];

export function readAuthentication(section: Section): Authentication {
  const authentication = { tokenAuthFile: section.optionalFile("tokenAuthFile") };
  section.finish();
  return authentication;
}

export function readAuthorization(section: Section): Authorization {
  const modes = section.choices("mode", defaultAuthorizationModes, AUTHORIZATION_MODES);
  section.finish();
  return { modes };
}

export function checkAuthorizationMode(mode: string): string | undefined {
  return notAmong(mode, AUTHORIZATION_MODES);
}
