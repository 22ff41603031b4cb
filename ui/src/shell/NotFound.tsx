// The page for an unknown address, with links to known ones.
import { Link } from "@tanstack/react-router";
import { Empty } from "~/widgets/Panel";

export function NotFound() {
  return (
    <Empty>
      Page not found. The link may be from another version, or cut off. Go to{" "}
      <Link to="/fleet">Fleet Command</Link>, or press ? for keyboard shortcuts.
    </Empty>
  );
}
