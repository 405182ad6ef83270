import type { Logger } from "../ports.js";
import type { ListenAddress } from "./bind.js";
import { startPageServer, type PageServer } from "./page-server.js";
import type { Exposition } from "./metrics.js";

/**
 * Serves what `exposition` writes at `/metrics`, over plain HTTP and to anybody who can connect.
 * @throws FunctionError start-refused
 */
export async function startMetricsServer(
  address: ListenAddress,
  exposition: Exposition,
  logger: Logger,
): Promise<PageServer> {
  const metrics = async (accept: string | undefined) => ({
    status: 200,
    ...(await exposition(accept)),
  });
  const routes = new Map([["/metrics", metrics]]);
  return await startPageServer(address, "--metrics-address", routes, logger);
}
