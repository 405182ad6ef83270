/** An object on one line. JSON leaves characters in texts that a terminal obeys or hides: here it does not. */
export function jsonLine(object: object): string {
  return `${JSON.stringify(object).replace(INVISIBLE, escapeUnits)}\n`;
}

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

function escapeUnits(character: string): string {
  return character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}
