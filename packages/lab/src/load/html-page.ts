/** A page without external requests. Escapes the title; inserts `style` and `body` unchanged. */
export function htmlPage(title: string, style: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title>
<style>${style}${PAGE_STYLE}</style>
</head>
<body>
${body}</body>
</html>
`;
}

export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

const PAGE_STYLE = `
body { font: 15px/1.5 system-ui, sans-serif; max-width: 980px; margin: 2rem auto; padding: 0 1rem; color: #1a1f24; background: #fff; overflow-wrap: anywhere; }
pre { background: #f4f6f8; padding: 1rem; overflow-x: auto; font-size: 13px; overflow-wrap: normal; }
table { border-collapse: collapse; display: block; overflow-x: auto; overflow-wrap: normal; } td, th { text-align: left; padding: .25rem .75rem; border-bottom: 1px solid #d5dbe1; }
td:last-child { min-width: 8rem; overflow-wrap: anywhere; }
tr.pass td:first-child { background: #d3f0d9; } tr.fail td:first-child { background: #f8d0d0; font-weight: 600; }
.number { text-align: right; } h2 { margin-top: 2rem; font-size: 1.1rem; }
`;
