// The bytes of a delivery or a call, formatted or raw, and whether they match a digest.
import { useQuery } from "@tanstack/react-query";
import { ExactBytes } from "~/widgets/ExactBytes";
import { type Exact, sha256 } from "~/widgets/exactBytes";
import { pretty } from "~/widgets/Json";
import { Loading } from "~/widgets/Panel";

export function useBytes(text: string) {
  return useQuery<Exact>({
    queryKey: ["bytes", text],
    queryFn: async () => {
      const content = new TextEncoder().encode(text);
      const digest = await sha256(content);
      return { text, pretty: pretty(text), size: content.length, digest, rewritten: false };
    },
    staleTime: Number.POSITIVE_INFINITY,
  }).data;
}

export function Body({ text, title }: { text: string; title: string }) {
  const content = useBytes(text);
  return content ? <ExactBytes content={content} digest={null} title={title} /> : <Loading rows={2} />;
}
