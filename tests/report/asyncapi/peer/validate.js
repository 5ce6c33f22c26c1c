// Says whether documents are valid: for each file in the directories named, a line of JSON with its name, what
// AsyncAPI's own parser objects to, and what it read: the message VPN, addresses by channel, actions by operation.
'use strict';
const fs = require('fs');
const path = require('path');
const { Parser } = require(path.join(process.env.ASYNCAPI, '@asyncapi', 'parser'));

const SEVERITIES = ['error', 'warning', 'information', 'hint'];

async function told(parser, file) {
  const { document, diagnostics } = await parser.parse(fs.readFileSync(file, 'utf8'), { source: file });
  const objections = diagnostics.map((one) => [SEVERITIES[one.severity], one.code, one.message, one.path.join('.')]);
  const channels = {};
  const operations = {};
  let vpn = null;
  if (document) {
    vpn = document.info().json()['x-vpnrouter-observed'].vpn;
    document.channels().forEach((one) => { channels[one.id()] = one.address(); });
    document.operations().forEach((one) => { operations[one.id()] = one.action(); });
  }
  return { file, read: document !== undefined, objections, vpn, channels, operations };
}

(async () => {
  const parser = new Parser();
  for (const folder of process.argv.slice(2)) {
    const names = fs.readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.yaml')).sort();
    for (const name of names) console.log(JSON.stringify(await told(parser, path.join(folder, name))));
  }
})();
