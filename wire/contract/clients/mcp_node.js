// The official TypeScript client of the Model Context Protocol against /mcp. It prints "ok WHAT" or "FAIL WHAT" lines.
// Arguments: address, a whole key, a scoped key, the id of a channel.
const { createRequire } = require("module");
const load = createRequire(process.env.PARLEY_NODE_MODULES + "/");
const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ResourceUpdatedNotificationSchema } = load("@modelcontextprotocol/sdk/types.js");

const [address, whole, scoped, channel] = process.argv.slice(2);
const check = (what, passed) => console.log(`${passed ? "ok" : "FAIL"} ${what}`);

async function connect(key) {
  const client = new Client({ name: "conform", version: "1" });
  const requestInit = { headers: { Authorization: `Bearer ${key}` } };
  const transport = new StreamableHTTPClientTransport(new URL(address), { requestInit });
  await client.connect(transport);
  return client;
}

async function main() {
  const reader = await connect(whole);
  const tools = (await reader.listTools()).tools.map((x) => x.name);
  check("a whole key has no writing tools", tools.includes("read_messages") && !tools.includes("send_message"));
  await reader.close();

  const writer = await connect(scoped);
  const uri = `parley://channel/${channel}/topic/node`;
  let heard;
  const update = new Promise((resolve) => (heard = resolve));
  writer.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => heard(n.params.uri));
  await writer.subscribeResource({ uri });
  const args = { channel_id: Number(channel), topic: "node", content: "from Node" };
  const sent = await writer.callTool({ name: "send_message", arguments: args });
  check("a message is sent", !sent.isError);
  check("the topic is updated", (await update) === uri);
  const read = await writer.readResource({ uri });
  check("the resource has the message", read.contents[0].text.includes("from Node"));
  await writer.close();
}

main().catch((e) => check(`no error: ${e.stack}`, false)).finally(() => process.exit(0));
