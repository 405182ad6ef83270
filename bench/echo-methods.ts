/** The echo server's method that answers with the whole request. */
export const ECHO_WHOLE = "/bench.Echo/Whole";

/** The echo server's method that answers with ten bytes. */
export const ECHO_SMALL = "/bench.Echo/Small";
