// Ends the browser's sign-in at the gateway and begins the page anew, so that nothing seen stays in memory.
export async function signOut(): Promise<void> {
  await fetch("/logout", { credentials: "same-origin" }).catch(() => null);
  location.assign("/");
}
