// Bytes that stand in text.

/** The bytes of a base64 text; throws where it is damaged. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  // Over a million letters, `Uint8Array.from` takes ten times as long.
  for (let at = 0; at < raw.length; at += 1) bytes[at] = raw.charCodeAt(at);
  return bytes;
}
