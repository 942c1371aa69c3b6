// The documents of this repository as they are, with a search that runs in the browser, and without a request to anybody else. A link to a page that is not
// there ends the build. Links to other files lead to the repository ($GITHUB_REPOSITORY), or stay text where there is none.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const { GITHUB_REPOSITORY: repository, GITHUB_SERVER_URL: server = "https://github.com" } = process.env;
const files = repository && `${server}/${repository}/blob/${process.env.GITHUB_REF_NAME ?? "main"}`;

/** Copies, for Vite finds packages from the folder of a page upwards. */
const pages = path.join(root, "site/pages");
rmSync(pages, { recursive: true, force: true });
const listed = execFileSync("git", ["ls-files", "-z", "*.md", "docs/*.svg"], {
  cwd: root,
  encoding: "utf8",
}).split("\0");
const LEFT_OUT = /^(?:test|packages\/lab|bench\/peers|site|\.github)\//;
for (const page of listed.filter((name) => name !== "" && !LEFT_OUT.test(name)))
  cpSync(path.join(root, page), path.join(pages, page));

/** The sections of docs/README.md, which is the one index. */
function sidebar() {
  const sections = readFileSync(path.join(root, "docs/README.md"), "utf8").split(/^## /m).slice(1);
  return sections.map((section) => {
    const [title] = section.split("\n", 1);
    const items = [...section.matchAll(/\[([^\]]+)\]\(([^)#]+\.md)\)/g)].map(([, text, link]) => ({
      text: text.replace(/[\s`]+/g, " ").trim(),
      link: `/${path.posix
        .join("docs", link)
        .replace(/README\.md$/, "")
        .replace(/\.md$/, "")}`,
    }));
    return { text: title, items, collapsed: title === "Evidence" };
  });
}

/** Runs before VitePress judges links: those to files of the repository that are no pages. */
function linkFiles(markdown) {
  markdown.core.ruler.push("repository-files", ({ tokens, env }) => {
    for (const { children } of tokens) {
      for (const [index, token] of (children ?? []).entries()) {
        const href = token.type === "link_open" ? token.attrGet("href") : null;
        if (href === null || /^(?:[a-z]+:|#)/i.test(href) || /\.md(?:#.*)?$/.test(href)) continue;
        const page = path.relative(pages, path.resolve(path.dirname(env.path), href.split("#")[0]));
        if (!existsSync(path.join(root, page))) throw new Error(`${env.relativePath}: ${href} is not there`);
        if (files !== undefined) token.attrSet("href", `${files}/${page}`);
        else {
          Object.assign(token, { type: "text", tag: "", nesting: 0, content: "" });
          const close = children.slice(index).find((each) => each.type === "link_close");
          Object.assign(close, { type: "text", tag: "", nesting: 0, content: "" });
        }
      }
    }
  });
}

/** Angle brackets and braces are text in these pages; the only elements are line breaks and comments. */
function plainBrackets(markdown) {
  markdown.core.ruler.push("plain-brackets", ({ tokens }) => {
    for (const token of tokens) {
      if (token.type === "code_block") token.attrSet("v-pre", "");
      if (token.type === "html_block" && !/^\s*<!--/.test(token.content))
        throw new Error(`an element that this site does not show: ${token.content}`);
      for (const child of token.children ?? [])
        if (child.type === "html_inline" && !/^<(?:br>|!--)/.test(child.content)) child.type = "text";
    }
  });
}

export default defineConfig({
  title: "Sluice",
  description: "The streaming front door of Kubernetes nodes",
  srcDir: "./pages",
  rewrites: (page) => page.replace(/(^|\/)README\.md$/, "$1index.md"),
  base: process.env.SITE_BASE ?? "/",
  outDir: process.env.SITE_OUT ?? "./dist",
  cacheDir: path.join(root, "node_modules/.cache/site"),
  cleanUrls: true,
  lastUpdated: false,
  markdown: {
    config(markdown) {
      linkFiles(markdown);
      plainBrackets(markdown);
    },
  },
  themeConfig: {
    search: { provider: "local" },
    sidebar: sidebar(),
    nav: [
      { text: "Documents", link: "/docs/" },
      { text: "Changes", link: "/CHANGELOG" },
    ],
    ...(repository && { socialLinks: [{ icon: "github", link: `${server}/${repository}` }] }),
  },
});
