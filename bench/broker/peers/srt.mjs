// SPDX-License-Identifier: MIT
// The proxy that @anthropic-ai/sandbox-runtime starts on the host, with a list of hosts: srt.mjs PACKAGE-DIR PORT HOST...
import path from 'node:path';
import url from 'node:url';

const [packageDir, port, ...hosts] = process.argv.slice(2);
const load = (name) => import(url.pathToFileURL(path.join(packageDir, 'dist/sandbox', name)).href);
const { createHttpProxyServer } = await load('http-proxy.js');
const { createResolvedAddressGuard } = await load('resolved-address-guard.js');

const guard = createResolvedAddressGuard({ allowedDomains: hosts });
createHttpProxyServer({
  filter: (_, host) => hosts.includes(host),
  lookupFor: (target) => guard.lookupFor(target),
}).listen({ host: '127.0.0.1', port: Number(port), backlog: 1024 });
