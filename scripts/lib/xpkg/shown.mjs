const MAX_CHARACTERS = 100;

/**
 * A value out of somebody's file, for a message: as JSON in ASCII on one line, cut when it is long.
 *
 * @param {unknown} value
 * @returns {string}
 */
export function shown(value) {
  const text = value === undefined ? "nothing" : JSON.stringify(value);
  return text.length > MAX_CHARACTERS
    ? `${ascii(text.slice(0, MAX_CHARACTERS))}…`
    : ascii(text);
}

/**
 * @param {string} text
 * @returns {string} what is not printable ASCII as `\u` and four digits
 */
export function ascii(text) {
  return text.replaceAll(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
