import { defineConfig } from 'vitepress';
import { SIDEBAR } from './sidebar.mjs';

/** VitePress reads it from `.vitepress/` of the pages that scripts/docs.mjs collects. */
export default defineConfig({
  title: 'nestjs-weir',
  description: 'Hierarchical rate limiting for NestJS',
  lang: 'en',
  cleanUrls: true,
  lastUpdated: false,
  // Without it, links to pages that are not there end the build.
  ignoreDeadLinks: false,
  outDir: '../dist',
  cacheDir: '../node_modules/.vitepress',
  // Pages show {{ }} and <name> as text.
  markdown: {
    // Its dark theme has colours that are hard to read on the ground of a block.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Getting started', link: '/getting-started' },
      { text: 'Recipes', link: '/recipes' },
      { text: 'Reference', link: '/reference/' },
      { text: 'Troubleshooting', link: '/troubleshooting' },
    ],
    sidebar: SIDEBAR,
    // Its own label says other words than the link itself, which voice control cannot find.
    notFound: { linkLabel: 'Take me home' },
    socialLinks: [{ icon: 'github', link: 'https://github.com/nestjs-weir/nestjs-weir' }],
  },
});
