import { unreadFile } from "@sluice/client/internal/config/configuration-error";
import { readUpTo } from "@sluice/client/internal/config/named-file-text";
import { type GatewayConfiguration, parseConfiguration } from "./configuration.ts";

/** Reads a configuration file. Throws ConfigurationError if it is unreadable or invalid. */
export async function loadConfiguration(file: string): Promise<GatewayConfiguration> {
  return parseConfiguration(await readText(file), file);
}

/** Throws ConfigurationError if the file is unreadable. */
export async function readText(file: string): Promise<string> {
  try {
    return (await readUpTo(file)).toString("utf8");
  } catch (error) {
    throw unreadFile(file, error);
  }
}
