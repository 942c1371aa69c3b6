import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import { describeReal } from "../support/real-parts.ts";
import { type ServedGateway, serveGateway } from "../support/served-gateway.ts";
import { gatewayConfiguration } from "./door-configurations.ts";
import { allowGateway } from "./doors.ts";
import { AUDIT_LOG } from "./kubernetes/control-plane.ts";
import {
  type CertificateUser,
  certificateOf,
  kubeconfigText,
  subjectOf,
  TOKENS,
  type TokenUser,
} from "./kubernetes/credentials.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";

interface AuditEvent {
  readonly stage: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly impersonatedUser?: object;
  readonly authenticationMetadata?: object;
}

describeReal("cluster", "requests that a gateway forwards in a caller's name", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-impersonation-"));
  const kubectl = {
    version: cluster?.version,
    path: path.join(cluster?.programs ?? "", "kubectl"),
    minor: 37,
  };
  const runners: KubectlRunner[] = [];
  const gateways: ServedGateway[] = [];
  const write = (name: string, text: string): string => {
    const file = path.join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };

  /** A gateway whose account has what `sluice rbac` prints for it and nothing else. */
  const serve = async (account: CertificateUser, fields: object): Promise<ServedGateway> => {
    const credentials = certificateOf(account, cluster.credentials);
    const kubeconfig = write(
      `${account}.kubeconfig`,
      kubeconfigText(cluster.url, cluster.credentials, credentials),
    );
    const configuration = {
      ...gatewayConfiguration(cluster, "gateway"),
      cluster: { kubeconfig, forwardAs: "impersonate", ...fields },
      audit: { log: { path: auditFileOf(account) } },
    };
    const file = write(`${account}.json`, JSON.stringify(configuration));
    await allowGateway(cluster, file, subjectOf(account));
    const gateway = await serveGateway(file);
    gateways.push(gateway);
    return gateway;
  };
  const auditFileOf = (account: string): string => path.join(folder, `${account}-audit.jsonl`);
  const runAs = async (gateway: ServedGateway, user: object, ...args: string[]) => {
    const text = kubeconfigText(`https://${gateway.authority}`, cluster.credentials, user);
    const runner = new KubectlRunner(kubectl, { kubeconfig: write(`user-${runners.length}`, text) });
    runners.push(runner);
    return runner.run(args);
  };
  const tokenOf = (user: TokenUser): object => ({ token: TOKENS[user].token });
  const eventsOf = (file: string): AuditEvent[] =>
    readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  const completed = async (file: string, mark: string, username: string): Promise<AuditEvent | undefined> => {
    const find = (): AuditEvent | undefined =>
      eventsOf(file).find(
        ({ stage, user, requestURI }) =>
          stage === "ResponseComplete" && user.username === username && requestURI.includes(mark),
      );
    await eventually(`there is an event of ${mark}`, () => find() !== undefined);
    return find();
  };
  /** What the API server recorded of an account's request. */
  const recorded = (account: CertificateUser, mark: string) =>
    completed(path.join(cluster.folder, AUDIT_LOG), mark, subjectOf(account));

  afterAll(async () => {
    for (const runner of runners) runner.remove();
    for (const gateway of gateways) await gateway.stop();
    rmSync(folder, { recursive: true });
  });

  describe("by the verb impersonate", () => {
    let gateway: ServedGateway;
    beforeAll(async () => {
      gateway = await serve("sluice", {});
    });

    it("the API server's audit log, ours and our log name who asked", async () => {
      const as = ["--as=dave", "--as-group=devs"];
      const args = ["get", "pods", "-l", "asked=by-ivy", ...as];
      expect(await runAs(gateway, tokenOf("impersonator"), ...args)).toMatchObject({ exitCode: 0 });
      const event = await recorded("sluice", "by-ivy");
      expect(event?.impersonatedUser).toMatchObject({
        username: "dave",
        groups: ["devs", "system:authenticated"],
        extra: { "sluice.dev/requested-by": ["ivy"] },
      });
      const ours = await completed(auditFileOf("sluice"), "by-ivy", "ivy");
      expect(ours).toMatchObject({ user: { username: "ivy" }, impersonatedUser: { username: "dave" } });
      expect(gateway.logLines()).toContainEqual(
        expect.objectContaining({ msg: "request forwarded", user: "dave", requestedBy: "ivy" }),
      );
    });

    it("a session names who asked", async () => {
      const args = [
        "exec",
        "web",
        "-c",
        "main",
        "--as=dave",
        "--as-group=devs",
        "--",
        "echo",
        "asked-by-ivy",
      ];
      expect(await runAs(gateway, tokenOf("impersonator"), ...args)).toMatchObject({
        exitCode: 0,
        stdout: "asked-by-ivy\n",
      });
      await eventually("it is logged", () =>
        gateway.logLines().some(({ session }) => {
          const { user, requestedBy } = (session ?? {}) as Record<string, unknown>;
          return user === "dave" && requestedBy === "ivy";
        }),
      );
      const ours = await completed(auditFileOf("sluice"), "asked-by-ivy", "ivy");
      expect(ours).toMatchObject({ user: { username: "ivy" }, impersonatedUser: { username: "dave" } });
    });

    it("a user who is nobody else has no such extra", async () => {
      const { exitCode } = await runAs(gateway, tokenOf("dev"), "get", "pods", "-l", "asked=by-dave");
      expect(exitCode).toBe(0);
      const event = await recorded("sluice", "by-dave");
      expect(event?.impersonatedUser).toMatchObject({ username: "dave" });
      expect(JSON.stringify(event?.impersonatedUser)).not.toContain("requested-by");
    });
  });

  describe("by constrained impersonation", () => {
    let gateway: ServedGateway;
    beforeAll(async () => {
      gateway = await serve("sluice-constrained", { impersonation: "constrained" });
    });

    it("lacks no permission", async () => {
      const url = new URL("/readyz?verbose", gateway.adminUrl);
      await eventually("it is ready", async () => (await fetch(url)).status === 200);
      expect(await (await fetch(url)).text()).toContain("[+]cluster ok\n");
    });

    it.each<[string, object, string[], object]>([
      ["a user", tokenOf("dev"), [], { username: "dave" }],
      [
        "a user for another",
        tokenOf("constrained"),
        ["--as=dave", "--as-group=devs"],
        { username: "dave", extra: { "sluice.dev/requested-by": ["carol"] } },
      ],
    ])("%s", async (title, user, flags, impersonated) => {
      const label = title.replaceAll(" ", "-");
      const { exitCode } = await runAs(gateway, user, "get", "pods", "-l", `constrained=${label}`, ...flags);
      expect(exitCode).toBe(0);
      const event = await recorded("sluice-constrained", encodeURIComponent(`constrained=${label}`));
      expect(event?.impersonatedUser).toMatchObject(impersonated);
      expect(event?.authenticationMetadata).toEqual({ impersonationConstraint: "impersonate:user-info" });
      const session = await runAs(gateway, user, "exec", "web", "-c", "main", ...flags, "--", "echo", label);
      expect(session).toMatchObject({ exitCode: 0, stdout: `${label}\n` });
      const caller = flags.length === 0 ? "dave" : "carol";
      const ours = await completed(auditFileOf("sluice-constrained"), `command=${label}`, caller);
      expect(ours?.authenticationMetadata).toEqual(
        flags.length === 0 ? undefined : { impersonationConstraint: "impersonate:user-info" },
      );
    });

    it("a service account, by its name", async () => {
      const admin = ["--kubeconfig", cluster.adminKubeconfig];
      const { stdout } = await promisify(execFile)(kubectl.path, [...admin, "create", "token", "default"]);
      const token = { token: stdout.trim() };
      const answer = await runAs(gateway, token, "auth", "whoami", "-o", "json");
      expect(answer).toMatchObject({ exitCode: 0 });
      expect(JSON.parse(answer.stdout).status.userInfo).toEqual({
        username: "system:serviceaccount:default:default",
        groups: ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
      });
    });

    it("members of system:masters get the API server's refusal", async () => {
      const { exitCode, stderr } = await runAs(gateway, tokenOf("admin"), "get", "--raw", "/version");
      expect(exitCode).toBe(1);
      expect(stderr).toContain('User "sluice-constrained" cannot impersonate:user-info resource "groups"');
      expect(stderr).toContain("impersonating the system:masters group is not allowed");
    });
  });
});
