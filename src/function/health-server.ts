import type { Logger } from "../ports.js";
import type { ListenAddress } from "./bind.js";
import { startPageServer, type Page, type PageServer } from "./page-server.js";

/**
 * Serves `/livez`, which says that the process answers, and `/readyz`, which says 503 until
 * `isReady`, to anybody who can connect.
 * @throws FunctionError start-refused
 */
export async function startHealthServer(
  address: ListenAddress,
  isReady: () => boolean,
  logger: Logger,
): Promise<PageServer> {
  const routes = new Map([
    ["/livez", () => page(200, "ok")],
    ["/readyz", () => (isReady() ? page(200, "ok") : page(503, "not ready"))],
  ]);
  return await startPageServer(address, "--health-address", routes, logger);
}

function page(status: number, text: string): Page {
  return {
    status,
    contentType: "text/plain; charset=utf-8",
    body: `${text}\n`,
  };
}
