// An address that names nothing: say so, and where one can go.
import { Link } from "@tanstack/react-router";
import { Empty } from "~/widgets/Panel";

export function NotFound() {
  return (
    <Empty>
      There is no such page. The link may be from another version, or cut off. Go to{" "}
      <Link to="/fleet">Fleet Command</Link>, or press ? for all keys.
    </Empty>
  );
}
