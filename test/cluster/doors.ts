import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { parse } from "yaml";
import { type AgentProcess, startAgentProcess } from "../support/agent-process.ts";
import { sluiceCommand } from "../support/built-program.ts";
import { type ServedGateway, serveGateway } from "../support/served-gateway.ts";
import { gatewayConfiguration, nodeConfiguration } from "./door-configurations.ts";
import {
  type CertificateUser,
  certificateOf,
  kubeconfigText,
  subjectOf,
  TOKENS,
  type TokenUser,
} from "./kubernetes/credentials.ts";
import { applyText, type ClusterAddresses } from "./kubernetes/start-cluster.ts";

/** A user of the cluster; `nobody` sends no credentials. */
export type User = TokenUser | CertificateUser | "nobody";

export type DoorName = "straight" | "gateway" | "spdy" | "separate" | "caller" | "agent" | "node" | "both";

/** What a client needs to come through a door as one user. */
export interface Access {
  readonly url: string;
  readonly ca: string;
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly kubeconfig: string;
}

/** One way to the cluster. `straight` and `node` are API servers; behind `node` and `both` Sluice stands for the kubelet. */
export interface Door {
  readonly name: DoorName;
  access(user: User): Promise<Access>;
  /** What Sluice logged so far. */
  log(): string;
  /** Sluice's process; absent where it is not one alone. */
  readonly pid?: number | undefined;
}

export interface Doors {
  readonly doors: readonly Door[];
  stop(): Promise<void>;
}

/** Every way through Sluice to one cluster, as processes of the compiled program. */
export async function openDoors(cluster: ClusterAddresses, names: readonly DoorName[]): Promise<Doors> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-doors-"));
  const gateways: ServedGateway[] = [];
  const agents = new Map<User, Promise<AgentProcess>>();
  const serve = async (name: string, configuration: object): Promise<ServedGateway> => {
    const file = path.join(folder, `${name}.json`);
    writeFileSync(file, JSON.stringify(configuration));
    const gateway = await serveGateway(file);
    gateways.push(gateway);
    return gateway;
  };
  const open = async (name: DoorName): Promise<Door> => {
    if (name === "straight") return apiServerDoor(name, cluster.url, cluster, folder);
    if (name === "agent") return agentDoor(cluster, agents, folder);
    if (name === "node") {
      const { log } = await serve(name, nodeConfiguration(cluster));
      return { ...apiServerDoor(name, cluster.throughSluiceUrl, cluster, folder), log };
    }
    const { authority, log, child } = await serve(name, gatewayConfiguration(cluster, name));
    return { ...apiServerDoor(name, `https://${authority}`, cluster, folder), log, pid: child.pid };
  };
  const stop = async (): Promise<void> => {
    for (const agent of agents.values()) await (await agent).stop();
    for (const { child, exited } of gateways) {
      child.kill("SIGTERM");
      await exited;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const role = path.join(folder, "role.json");
    writeFileSync(role, JSON.stringify(gatewayConfiguration(cluster, "gateway")));
    await allowGateway(cluster, role, subjectOf("sluice"));
    return { doors: await Promise.all(names.map(open)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Gives a gateway's user what `sluice rbac` prints for it, and nothing else. */
export async function allowGateway(
  cluster: ClusterAddresses,
  configurationFile: string,
  user: string,
): Promise<void> {
  const command = sluiceCommand("rbac", "--config", configurationFile, "--user", user, "--name", user);
  const { stdout } = await promisify(execFile)(...command);
  await applyText(path.join(cluster.programs, "kubectl"), cluster.adminKubeconfig, stdout);
}

/** A server with the cluster's authority and users: an API server, or a gateway in front of it. */
function apiServerDoor(name: DoorName, url: string, cluster: ClusterAddresses, folder: string): Door {
  const file = (...names: string[]): string => path.join(cluster.credentials, ...names);
  return {
    name,
    log: () => "",
    access: async (user) => {
      const kubeconfig = path.join(folder, `${name}-${user}.kubeconfig`);
      const credentials = userFields(user, cluster.credentials);
      writeFileSync(kubeconfig, kubeconfigText(url, cluster.credentials, credentials), { mode: 0o600 });
      const ca = readFileSync(file("ca.crt"), "utf8");
      if (isTokenUser(user)) return { url, ca, kubeconfig, token: TOKENS[user].token };
      if (user === "nobody") return { url, ca, kubeconfig };
      const [cert, key] = [`${user}.crt`, `${user}.key`].map((name_) => readFileSync(file(name_), "utf8"));
      return { url, ca, kubeconfig, cert: cert ?? "", key: key ?? "" };
    },
  };
}

/** One `sluice agent` for each user: it has the user's credentials, and a token of its own for its client. */
function agentDoor(
  cluster: ClusterAddresses,
  agents: Map<User, Promise<AgentProcess>>,
  folder: string,
): Door {
  return {
    name: "agent",
    log: () => "",
    access: async (user) => {
      const own = path.join(folder, `own-${user}.kubeconfig`);
      writeFileSync(
        own,
        kubeconfigText(cluster.url, cluster.credentials, userFields(user, cluster.credentials)),
        {
          mode: 0o600,
        },
      );
      const running = agents.get(user) ?? startAgentProcess({ kubeconfig: own });
      agents.set(user, running);
      const { kubeconfig } = await running;
      const written = parse(readFileSync(kubeconfig, "utf8"));
      const { server, "certificate-authority-data": authority } = written.clusters[0].cluster;
      const ca = Buffer.from(authority, "base64").toString();
      return { url: server, ca, kubeconfig, token: written.users[0].user.token };
    },
  };
}

function userFields(user: User, credentialsFolder: string): object {
  if (user === "nobody") return {};
  return isTokenUser(user) ? { token: TOKENS[user].token } : certificateOf(user, credentialsFolder);
}

function isTokenUser(user: User): user is TokenUser {
  return user in TOKENS;
}
