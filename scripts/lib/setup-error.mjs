/** Something the person at the keyboard has to do; each line of the message says one thing. */
export class SetupError extends Error {
  /** @override */
  name = "SetupError";
}
