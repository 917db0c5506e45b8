// A page of the repository as a page of the site.

/**
 * Files of the repository beside the pages are pages of the site, and what is no HTML must not be taken for it:
 * VitePress compiles pages as templates.
 */
export function sitePage(markdown) {
  const parts = markdown.split(/(^```[\s\S]*?^```$|`[^`\n]*`)/gm);
  return parts.map((part, index) => (index % 2 === 1 ? codeOf(part) : proseOf(part))).join('');
}

/** Inline code with braces is text, too. */
function codeOf(part) {
  if (part.startsWith('```') || !part.includes('{{')) return part;
  return `<code v-pre>${part.slice(1, -1).replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</code>`;
}

function proseOf(part) {
  return (
    part
      .replaceAll('](../CHANGELOG.md', '](changelog.md')
      .replaceAll('](../SECURITY.md', '](security.md')
      .replaceAll('](docs/', '](')
      // Pictures in HTML are taken for packages otherwise.
      .replace(/(src|srcset)="(?=\w)/g, '$1="./')
      .replace(/<!--[\s\S]*?-->/g, '')
  );
}
