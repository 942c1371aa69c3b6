import { execFile, spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { CLIENT_CHECKS, checksIn } from "./client-checks.ts";

const { SLUICE_PARTS_DIR: parts = path.join(homedir(), ".cache/sluice/real-parts") } = process.env;
const jars = path.join(parts, "java-clients");
/** The program's word for each client, its name, and the jar that has its version. */
const CLIENTS = [
  ["vertx", "fabric8 by Vert.x", "kubernetes-httpclient-vertx"],
  ["okhttp", "fabric8 by OkHttp", "kubernetes-httpclient-okhttp"],
  ["jdk", "fabric8 by the JDK's client", "kubernetes-httpclient-jdk"],
  ["client-java", "the official client-java", "client-java"],
] as const;
/** The first that runs a source file with the language of the program is 17. */
const hasJava = spawnSync("java", ["--source", "17", "--version"]).status === 0;
const names = hasJava && existsSync(jars) ? readdirSync(jars) : [];

function versionOf(jar: string): string | undefined {
  const pattern = new RegExp(String.raw`^${jar}-(\d[\d.]*)\.jar$`);
  return names.flatMap((name) => pattern.exec(name)?.[1] ?? [])[0];
}

describe.skipIf(CLIENTS.every(([, , jar]) => versionOf(jar) === undefined))("clients of Java", () => {
  let demo: RunningDemo;
  beforeAll(async () => {
    demo = await startDemo();
  }, 60_000);
  afterAll(() => demo?.stop());

  for (const [word, name, jar] of CLIENTS) {
    const version = versionOf(jar);
    const needs = "(needs java 17, and mvn dependency:copy-dependencies in test/real/java)";
    it.skipIf(version === undefined)(
      `${name} ${version ?? needs} has exit codes, 5 MB each way and 20 forwards of pods on nodes of both kinds`,
      async () => {
        const program = path.join(import.meta.dirname, "java/JavaClients.java");
        const words = ["-cp", `${jars}/*`, program, word, demo.kubeconfig, "web", "web-ws"];
        const { stdout } = await promisify(execFile)("java", words, { timeout: 240_000 });
        expect(checksIn(stdout)).toEqual([CLIENT_CHECKS, CLIENT_CHECKS]);
      },
      250_000,
    );
  }
});
