/** Every object within what Cedar says of a rule, that included. No recursion: rules nest deeply. */
export function* objectsIn(whole: unknown): Generator<object> {
  const unread = [whole];
  while (unread.length > 0) {
    const value = unread.pop();
    if (typeof value !== "object" || value === null) continue;
    yield value;
    // One by one: a set may have more members than a call may have arguments.
    for (const part of Object.values(value) as unknown[]) unread.push(part);
  }
}
