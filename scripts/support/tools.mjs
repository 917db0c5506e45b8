import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { filesBelow, writeStartScript } from './start-script.mjs';
import { toolCache } from './root.mjs';
import { ensureTool } from './tool.mjs';

export const ensureRedisServer = () =>
  ensureTool({
    name: 'redis-server',
    variable: 'REDIS_SERVER_BIN',
    programs: ['redis-server', 'valkey-server'],
    versionPattern: /(redis|valkey)[ -]server/i,
    packages: [['redis-server'], ['valkey-server']],
    advice: 'install one (apt-get install redis-server, brew install redis)',
    wrap(tree, script) {
      const program = ['redis-server', 'valkey-server'].find((name) =>
        filesBelow(tree).includes(join('root/usr/bin', name)),
      );
      writeStartScript(tree, script, `exec "$here/root/usr/bin/${program}" "$@"`);
    },
  });

export const ensureLuacheck = () =>
  ensureTool({
    name: 'luacheck',
    variable: 'LUACHECK_BIN',
    programs: ['luacheck'],
    versionPattern: /luacheck/i,
    packages: [['lua-check', 'lua5.1']],
    advice: 'install it (apt-get install lua-check, brew install luacheck)',
    wrap(tree, script) {
      const share = '$here/root/usr/share/lua/5.1';
      const native = filesBelow(tree).find((file) => file.endsWith('/lua/5.1/lfs.so'));
      // The closing ;; keeps Lua's own paths, for the parts this machine already had.
      writeStartScript(
        tree,
        script,
        `export LUA_PATH="${share}/?.lua;${share}/?/init.lua;;"`,
        native ? `export LUA_CPATH="$here/${dirname(native)}/?.so;;"` : '',
        'PATH="$here/root/usr/bin:$PATH"',
        'exec lua5.1 "$here/root/usr/bin/luacheck" "$@"',
      );
    },
  });

export const ensurePromtool = () =>
  ensureTool({
    name: 'promtool',
    variable: 'PROMTOOL_BIN',
    programs: ['promtool'],
    versionPattern: /promtool, version/,
    packages: [['prometheus']],
    advice: 'install it (apt-get install prometheus, brew install prometheus)',
    wrap(tree, script) {
      writeStartScript(tree, script, 'exec "$here/root/usr/bin/promtool" "$@"');
    },
  });

/** Of the same package, so it is beside a promtool that was fetched. */
export const ensurePrometheus = () =>
  ensureTool({
    name: 'prometheus',
    variable: 'PROMETHEUS_BIN',
    programs: ['prometheus'],
    places: [join(toolCache, 'promtool/root/usr/bin')],
    versionPattern: /prometheus, version/,
    packages: [['prometheus']],
    advice: 'install it (apt-get install prometheus, brew install prometheus)',
    wrap(tree, script) {
      writeStartScript(tree, script, 'exec "$here/root/usr/bin/prometheus" "$@"');
    },
  });

/** Beside it is vgdb, by which what it counts is read. */
export const ensureValgrind = () =>
  ensureTool({
    name: 'valgrind',
    variable: 'VALGRIND_BIN',
    programs: ['valgrind'],
    versionPattern: /^valgrind-/,
    packages: [['valgrind']],
    advice: 'install it (apt-get install valgrind)',
    wrap(tree, script) {
      const tool = filesBelow(tree).find((file) => /\/callgrind-\w+-linux$/.test(file));
      writeStartScript(
        tree,
        script,
        `export VALGRIND_LIB="$here/${dirname(tool)}"`,
        'exec "$here/root/usr/bin/valgrind" "$@"',
      );
      writeStartScript(tree, join(tree, 'vgdb'), 'exec "$here/root/usr/bin/vgdb" "$@"');
    },
  });

/** The fonts of the fetched tree, and those that this machine has: without any, a page has no letters. */
const FONTS = `<?xml version="1.0"?>
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir prefix="relative">root/usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
`;

export const ensureChromium = () =>
  ensureTool({
    name: 'chromium',
    variable: 'CHROMIUM_BIN',
    programs: ['chromium', 'chromium-browser', 'google-chrome'],
    versionPattern: /chrom(e|ium)/i,
    packages: [['chromium', 'fonts-dejavu-core']],
    advice: 'install it (apt-get install chromium, brew install --cask chromium)',
    wrap(tree, script) {
      writeFileSync(join(tree, 'fonts.conf'), FONTS);
      writeStartScript(
        tree,
        script,
        'export FONTCONFIG_FILE="$here/fonts.conf"',
        // Debian's own start script reads settings from /etc, which are not there.
        'exec "$here/root/usr/lib/chromium/chromium" "$@"',
      );
    },
  });
