import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, mkdtemp, open, rm, rmdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

/** The values in the kubeconfig that kubectl uses to reach the agent. */
interface AgentAccess {
  readonly server: string;
  /** PEM. */
  readonly authority: string;
  readonly token: string;
  /** The context's namespace. */
  readonly namespace: string;
}

/**
 * The kubeconfig's location: a file, `kubeconfig` in a folder, or, without either, a new temporary
 * folder.
 */
export interface KubeconfigPlace {
  readonly file?: string | undefined;
  readonly folder?: string | undefined;
}

const MARK = "# Written by sluice agent, process ";
/** A mark and a process id; of an existing file, only this much is read. */
const MARK_BYTES = 64;

/** The file exists, and it is not an earlier agent's. */
export class KubeconfigTakenError extends Error {
  override readonly name = "KubeconfigTakenError";
}

/** The kubeconfig of one running agent. Only its user may read it, and the agent removes it when it ends. */
export class AgentKubeconfig {
  readonly file: string;
  /** Folders that the agent created, removed if they are empty. */
  readonly #ownFolder: string | undefined;

  private constructor(file: string, ownFolder: string | undefined) {
    this.file = file;
    this.#ownFolder = ownFolder;
  }

  /** Throws KubeconfigTakenError and file system errors. */
  static async write(place: KubeconfigPlace, access: AgentAccess): Promise<AgentKubeconfig> {
    const { file, ownFolder } = await claim(place);
    const kubeconfig = new AgentKubeconfig(file, ownFolder);
    try {
      await removeAbandoned(file);
      await writeNew(file, `${MARK}${process.pid}\n${kubeconfigText(access)}`);
      return kubeconfig;
    } catch (error) {
      await kubeconfig.#removeFolder();
      throw error;
    }
  }

  /** Keeps a file that another process has written there meanwhile. */
  async remove(): Promise<void> {
    if ((await writerOf(this.file)) === process.pid) await rm(this.file, { force: true });
    await this.#removeFolder();
  }

  async #removeFolder(): Promise<void> {
    if (this.#ownFolder !== undefined) await rmdir(this.#ownFolder).catch(() => {});
  }
}

/** 32 random bytes, encoded for a header. */
export function randomToken(): string {
  return randomBytes(32).toString("base64url");
}

async function claim({
  file,
  folder,
}: KubeconfigPlace): Promise<{ file: string; ownFolder: string | undefined }> {
  if (file !== undefined) return { file: path.resolve(file), ownFolder: undefined };
  if (folder !== undefined) {
    const absolute = path.resolve(folder);
    const made = await mkdir(absolute, { recursive: true, mode: 0o700 });
    return { file: path.join(absolute, "kubeconfig"), ownFolder: made === undefined ? undefined : absolute };
  }
  const temporary = await mkdtemp(path.join(tmpdir(), "sluice-agent-"));
  return { file: path.join(temporary, "kubeconfig"), ownFolder: temporary };
}

/** A killed agent leaves its file behind; the next one may replace it. */
async function removeAbandoned(file: string): Promise<void> {
  const writer = await writerOf(file);
  if (writer === undefined) return;
  if (writer !== "somebody else" && !isRunning(writer)) return await rm(file, { force: true });
  throw new KubeconfigTakenError(
    writer === "somebody else"
      ? `${file} exists, and no agent wrote it`
      : `${file} belongs to the agent that runs as process ${writer}`,
  );
}

/** The process that wrote the file; undefined if the file does not exist. */
async function writerOf(file: string): Promise<number | "somebody else" | undefined> {
  let start: string;
  try {
    // Does not wait for the writer of a named pipe.
    const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(MARK_BYTES), 0, MARK_BYTES, 0);
      start = buffer.subarray(0, bytesRead).toString("latin1");
    } finally {
      await handle.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const id = start.startsWith(MARK) ? /^\d+(?=\n)/.exec(start.slice(MARK.length))?.[0] : undefined;
  return id === undefined ? "somebody else" : Number(id);
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process runs as another user.
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/**
 * Never follows a link or overwrites a file: another user could have planted either, to read or
 * redirect the credentials.
 */
async function writeNew(file: string, text: string): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await open(file, flags, 0o600);
  try {
    await handle.writeFile(text);
  } finally {
    await handle.close();
  }
}

/** JSON is valid YAML and quotes any namespace safely. */
function kubeconfigText({ server, authority, token, namespace }: AgentAccess): string {
  const name = "sluice-agent";
  const cluster = { server, "certificate-authority-data": Buffer.from(authority).toString("base64") };
  return `apiVersion: v1
kind: Config
current-context: ${name}
clusters: [${JSON.stringify({ name, cluster })}]
users: [${JSON.stringify({ name, user: { token } })}]
contexts: [${JSON.stringify({ name, context: { cluster: name, user: name, namespace } })}]
`;
}
