// Signs the browser out at the gateway and reloads the page, so that no data stays in memory.
export async function signOut(): Promise<void> {
  await fetch("/logout", { credentials: "same-origin" }).catch(() => null);
  location.assign("/");
}
