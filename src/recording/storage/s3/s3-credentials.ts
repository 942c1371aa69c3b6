import { readFile } from "node:fs/promises";
import { fileErrorOf, RecordingFileError } from "../../reading/recording-file-error.ts";

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

/**
 * Reads the credentials anew, so that they may rotate: of `file`, as AWS writes it, or else of the
 * environment. Rejects with RecordingFileError, whose text has nothing of the file.
 */
export async function readS3Credentials(
  file: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<S3Credentials> {
  if (file === undefined)
    return credentialsOf(
      {
        aws_access_key_id: environment.AWS_ACCESS_KEY_ID,
        aws_secret_access_key: environment.AWS_SECRET_ACCESS_KEY,
        aws_session_token: environment.AWS_SESSION_TOKEN,
      },
      "the environment has no AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    );
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw fileErrorOf(error, file);
  }
  return credentialsOf(
    defaultProfileOf(text),
    `${file} has no aws_access_key_id and aws_secret_access_key in [default]`,
  );
}

/** The values of `[default]`, or of a file without profiles. */
function defaultProfileOf(text: string): Readonly<Record<string, string>> {
  const values: Record<string, string> = {};
  let profile = "default";
  for (const line of text.split("\n").map((each) => each.trim())) {
    if (line.startsWith("[") && line.endsWith("]")) profile = line.slice(1, -1).trim();
    const end = line.indexOf("=");
    if (profile !== "default" || end === -1 || line.startsWith("#") || line.startsWith(";")) continue;
    values[line.slice(0, end).trim().toLowerCase()] = line.slice(end + 1).trim();
  }
  return values;
}

function credentialsOf(values: Readonly<Record<string, string | undefined>>, missing: string): S3Credentials {
  const accessKeyId = values.aws_access_key_id ?? "";
  const secretAccessKey = values.aws_secret_access_key ?? "";
  if (accessKeyId === "" || secretAccessKey === "") throw new RecordingFileError(missing);
  const sessionToken = values.aws_session_token || undefined;
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) };
}
