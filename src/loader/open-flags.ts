import { constants } from "node:fs";

/**
 * For reading a file that was looked at a moment ago: never waits for a FIFO's writer, never follows
 * a link that was put there since.
 */
export const READ_UNFOLLOWED =
  constants.O_RDONLY |
  constants.O_NONBLOCK |
  constants.O_NOFOLLOW |
  constants.O_NOCTTY;
