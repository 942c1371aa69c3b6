import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { KubeletPath } from "../../api/kubelet-path.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { CriRuntime } from "../../cri/cri-runtime.ts";
import { findRunningContainer, findSandbox } from "../../cri/pods.ts";
import { writeAnswer } from "../../listeners/write-answer.ts";

/**
 * Answers `/run`: runs `cmd`, split at single blanks, and returns its output, stdout first, labelled JSON as
 * by the kubelet. Throws the kubelet's refusals; 500 with a failed command's output.
 */
export async function runCommand(
  path: KubeletPath,
  query: URLSearchParams,
  downstream: HttpDownstream,
  runtime: CriRuntime,
): Promise<void> {
  const sandbox = await findSandbox(runtime, path);
  const container = await findRunningContainer(runtime, sandbox, path.container);
  const command = (query.get("cmd") ?? "").split(" ");
  const { stdout, stderr, exitCode } = await runtime.execSync(container.id, command, 0);
  const output = Buffer.concat([stdout, stderr]);
  if (exitCode !== 0) {
    const facts = { command: command.join(" "), exitCode, output: output.toString() };
    throw WIRE_ERRORS["command-failed"].kubelet(facts);
  }
  writeAnswer(downstream, 200, [["Content-Type", "application/json"]], output);
}
