// Saves text generated in the page as a file download.

export function save(name: string, text: string, type: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  // The browser has taken it by the next task.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
