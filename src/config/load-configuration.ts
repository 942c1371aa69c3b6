import { readFile } from "node:fs/promises";
import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { type GatewayConfiguration, parseConfiguration } from "./configuration.ts";

/** Reads a configuration file. Throws ConfigurationError if it is unreadable or invalid. */
export async function loadConfiguration(file: string): Promise<GatewayConfiguration> {
  return parseConfiguration(await readText(file), file);
}

/** Throws ConfigurationError if the file is unreadable. */
export async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError([{ source: file, line: 0, column: 0, path: "", message }]);
  }
}
