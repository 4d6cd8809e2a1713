const KEPT_MS = 1000; // long enough for the browser to begin

/** Gives the user a file to keep. */
export function saveFile(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEPT_MS);
}

/** The user's own time, as every file system takes it: 2026-11-23_19-05-09. */
export function inFileName(date) {
  return date.toLocaleString("sv").replace(" ", "_").replaceAll(":", "-");
}
