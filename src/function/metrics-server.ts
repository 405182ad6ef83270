import type { Logger } from "../ports.js";
import type { ListenAddress } from "./bind.js";
import type { Exposition, MetricsPage } from "./metrics.js";
import { chooseMetricsFormat, type MetricsFormat } from "./metrics-format.js";
import { startPageServer, type PageServer } from "./page-server.js";

/**
 * Serves what `exposition` writes at `/metrics`, over plain HTTP and to anybody who can connect. A
 * page is written at most once a second in each format, however many ask.
 * @throws FunctionError start-refused
 */
export async function startMetricsServer(
  address: ListenAddress,
  exposition: Exposition,
  logger: Logger,
): Promise<PageServer> {
  const recent = reuse(exposition);
  const metrics = async (accept: string | undefined) => ({
    status: 200,
    ...(await recent(accept)),
  });
  const routes = new Map([["/metrics", metrics]]);
  return await startPageServer(address, "--metrics-address", routes, logger);
}

const reusedForMs = 1_000;

/** To write a page takes milliseconds, and resets what is measured since the last one. */
function reuse(exposition: Exposition): Exposition {
  const pages = new Map<MetricsFormat, Promise<MetricsPage>>();
  return (accept) => {
    const format = chooseMetricsFormat(accept);
    const recent = pages.get(format);
    if (recent !== undefined) return recent;
    const page = exposition(accept);
    pages.set(format, page);
    const forget = () => {
      if (pages.get(format) === page) pages.delete(format);
    };
    setTimeout(forget, reusedForMs).unref();
    page.catch(forget);
    return page;
  };
}
