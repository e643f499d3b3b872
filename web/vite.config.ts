import { defineConfig, type Plugin } from "vite";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

// Beside each file that shrinks, a .gz of it: the controller sends it to browsers that take it.
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    // After all others, which still change the files here.
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        for (const [name, file] of Object.entries(bundle)) {
          const bytes = Buffer.from(file.type === "chunk" ? file.code : file.source);
          const packed = gzipSync(bytes, { level: 9 });
          if (packed.length < bytes.length * 0.9)
            this.emitFile({ type: "asset", fileName: `${name}.gz`, source: packed });
        }
      },
    },
  };
}

// For `npm run dev`: REGATTA_STATE is the state folder of a running `regatta up`, REGATTA_URL its
// address. The token stays in this process and never reaches the browser.
function controller() {
  const state = process.env.REGATTA_STATE;
  if (!state) return undefined;
  const token = readFileSync(`${state}/admin.token`, "utf8").trim();
  return {
    target: process.env.REGATTA_URL ?? "https://127.0.0.1:7780",
    secure: false,
    headers: { authorization: `Bearer ${token}` },
  };
}

export default defineConfig(({ command }) => {
  const target = command === "serve" ? controller() : undefined;
  return {
    plugins: [compressed()],
    // The source is React; Preact runs it in 5 kB where react-dom takes 60.
    resolve: {
      alias: {
        "react-dom/client": "preact/compat/client",
        "react/jsx-runtime": "preact/jsx-runtime",
        react: "preact/compat",
      },
    },
    server: {
      host: "127.0.0.1",
      port: Number(process.env.PORT ?? 5173),
      proxy: target ? { "/v1": target, "/metrics": target } : undefined,
    },
    build: {
      target: "es2022",
      assetsInlineLimit: 0, // the content security policy of the controller has no data: addresses
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
    },
    esbuild: { legalComments: "none" },
  };
});
