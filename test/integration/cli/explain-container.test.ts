import { afterEach, describe, expect, it, vi } from "vitest";
import { runCommand } from "../../../src/cli/command-line.ts";
import { GatewayFiles, webOn } from "../../support/gateway-files.ts";

let files: GatewayFiles | undefined;
afterEach(() => {
  vi.restoreAllMocks();
  files?.remove();
});

/** A pod of three containers in front of the node `node`. */
function podWith(annotations: Readonly<Record<string, string>>): object {
  const container = (name: string) => ({ name, image: "i" });
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "several", namespace: "default", annotations },
    spec: {
      nodeName: "node",
      containers: [container("app"), container("proxy")],
      initContainers: [container("setup")],
    },
  };
}

async function explain(annotations: Readonly<Record<string, string>>, ...args: string[]) {
  files = new GatewayFiles({ ...webOn(10_255), manifests: [podWith(annotations)] });
  let printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  const code = await runCommand("explain", ["--config", files.configurationFile, "--as", "jane", ...args]);
  return { code, line: printed.split("\n").find((line) => /^(?:exec|portforward|refused) /.test(line)) };
}

const ANNOTATION = "kubectl.kubernetes.io/default-container";

describe("sluice explain of a pod with several containers", () => {
  it.each([
    ["without -c: the first, as kubectl", {}, [], "container app, kubectl's default"],
    ["the annotated one", { [ANNOTATION]: "proxy" }, [], "container proxy, kubectl's default"],
    ["an annotated init container", { [ANNOTATION]: "setup" }, [], "container setup, kubectl's default"],
    [
      "the first where the annotation names none",
      { [ANNOTATION]: "gone" },
      [],
      "container app, kubectl's default",
    ],
    ["the one of -c", { [ANNOTATION]: "proxy" }, ["-c", "app"], "container app"],
  ])("takes %s", async (_, annotations, args, container) => {
    const { code, line } = await explain(annotations, "exec", "default/several", ...args);
    expect(line).toBe(`exec default/several, ${container}`);
    expect(code).toBe(0);
  });

  it("needs none for port-forward, and refuses one that is not there", async () => {
    expect((await explain({}, "portforward", "default/several")).line).toBe("portforward default/several");
    files?.remove();
    expect(await explain({}, "exec", "default/several", "-c", "nosuch")).toEqual({
      code: 1,
      line: "refused with 400: container nosuch is not valid for pod several",
    });
  });
});
