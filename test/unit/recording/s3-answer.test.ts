import { describe, expect, it } from "vitest";
import {
  elementsOf,
  errorCodeOf,
  S3Error,
  textOf,
  uploadProblemOf,
} from "../../../src/recording/storage/s3/s3-answer.ts";
import { readS3Credentials } from "../../../src/recording/storage/s3/s3-store.ts";
import { PART_BYTES, partBytesFor } from "../../../src/recording/storage/s3/upload-file.ts";

describe("answers of an S3-compatible store", () => {
  it("have elements, also with attributes and others of a similar name", () => {
    const xml =
      '<A xmlns="x"><Uploads/><UploadId>1</UploadId><Upload><Key>a&amp;b</Key></Upload><Upload></Upload></A>';
    expect(elementsOf(xml, "Upload")).toEqual(["<Key>a&amp;b</Key>", ""]);
    expect(elementsOf(xml, "UploadId")).toEqual(["1"]);
    expect(elementsOf(xml, "A")).toHaveLength(1);
    expect(elementsOf("<Key>cut", "Key")).toEqual([]);
    expect(elementsOf("<Key cut", "Key")).toEqual([]);
  });

  it("have text with entities", () => {
    expect(textOf("&quot;a&#34;&#x22;&lt;&gt;&apos;&amp;amp;")).toBe('"a""<>\'&amp;');
    expect(textOf("&unknown; &#x110000; &")).toBe("&unknown; &#x110000; &");
    expect(textOf('"&lt;&amp;&gt;"')).toBe('"<&>"');
  });

  it("have a code if they are errors, and the rest stays hidden", () => {
    const error = (code: string): Buffer =>
      Buffer.from(`<Error><Code>${code}</Code><Message>the key AKIA</Message></Error>`);
    expect(errorCodeOf(error("SlowDown"))).toBe("SlowDown");
    expect(errorCodeOf(error("not a code\u001b[2J"))).toBe("without a code of S3");
    expect(errorCodeOf(Buffer.from("<CompleteMultipartUploadResult/>"))).toBeUndefined();
    expect(errorCodeOf(Buffer.alloc(0))).toBeUndefined();
    expect(uploadProblemOf(new S3Error("SlowDown", 503, "the upload"))).toBe("the upload: 503 SlowDown");
  });

  it("are repeated or end the round, by their code and status", () => {
    const kinds = [
      ["ECONNRESET", 0],
      ["SlowDown", 503],
      ["RequestTimeout", 400],
      ["AccessDenied", 403],
      ["NoSuchBucket", 404],
      ["EntityTooLarge", 400],
      ["PreconditionFailed", 412],
    ] as const;
    expect(kinds.map(([code, status]) => new S3Error(code, status, "it").isTransient)).toEqual([
      ...[true, true, true, false, false, false, false],
    ]);
    expect(kinds.map(([code, status]) => new S3Error(code, status, "it").isOfStore)).toEqual([
      ...[true, true, true, true, true, false, false],
    ]);
  });
});

describe("credentials of the environment", () => {
  it("are read, and named if they are missing", async () => {
    const environment = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "secret" };
    expect(await readS3Credentials(undefined, environment)).toEqual({
      accessKeyId: "id",
      secretAccessKey: "secret",
    });
    expect(await readS3Credentials(undefined, { ...environment, AWS_SESSION_TOKEN: "t" })).toMatchObject({
      sessionToken: "t",
    });
    await expect(readS3Credentials(undefined, { AWS_ACCESS_KEY_ID: "id" })).rejects.toThrow(
      "the environment has no AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    );
    await expect(readS3Credentials("/missing/file", environment)).rejects.toThrow(
      "/missing/file: no such file",
    );
  });
});

describe("parts of an upload", () => {
  it("are at most 10,000", () => {
    expect(partBytesFor(20)).toBe(PART_BYTES);
    for (const bytes of [PART_BYTES * 10_000, PART_BYTES * 10_000 + 1, 2 ** 40])
      expect(Math.ceil(bytes / partBytesFor(bytes))).toBeLessThanOrEqual(10_000);
  });
});
