// The page's icons: 20 units square, one stroke, no fill, in the colour of the surrounding text.
const PATHS = {
  fleet:
    "M10 3.5v4M10 12.5v4M4 6.5l3.6 2.2M12.4 11.3l3.6 2.2M16 6.5l-3.6 2.2M7.6 11.3L4 13.5M12.5 10a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0z",
  sessions: "M5 4.5h3v3H5zM12 8.5h3v3h-3zM5 12.5h3v3H5zM8 6h2.5v8H8M10.5 10H12",
  registry: "M4 4.5h12v11H4zM4 8h12M4 11.8h12M7.8 8v7.5",
  scheduler: "M10 4a6 6 0 1 1 0 12 6 6 0 0 1 0-12zM10 6.8V10l2.3 1.6",
  forensics: "M8.8 4a4.8 4.8 0 1 1 0 9.6 4.8 4.8 0 0 1 0-9.6zM12.4 12.4L16.5 16.5M7 8.8h3.6",
  god: "M10 3.8v5.4M6.4 5.9a5.6 5.6 0 1 0 7.2 0",
  bell: "M5.5 13.5V9a4.5 4.5 0 0 1 9 0v4.5l1 1h-11zM8.6 16.5h2.8",
  inbox: "M4 11l2-6.5h8L16 11v4.5H4zM4 11h3.4l1 1.8h3.2l1-1.8H16",
  search: "M9 4.2a4.8 4.8 0 1 1 0 9.6 4.8 4.8 0 0 1 0-9.6zM12.5 12.5L16.3 16.3",
  sun: "M10 6.8a3.2 3.2 0 1 1 0 6.4 3.2 3.2 0 0 1 0-6.4zM10 2.8v1.6M10 15.6v1.6M2.8 10h1.6M15.6 10h1.6M4.9 4.9L6 6M14 14l1.1 1.1M4.9 15.1L6 14M14 6l1.1-1.1",
  moon: "M15.6 12.2A6.2 6.2 0 0 1 7.8 4.4a6.2 6.2 0 1 0 7.8 7.8z",
  link: "M8.4 11.6l3.2-3.2M9 6.6l1.5-1.5a3 3 0 0 1 4.3 4.3L13.3 11M11 13.4l-1.5 1.5a3 3 0 0 1-4.3-4.3L6.7 9",
  close: "M5.5 5.5l9 9M14.5 5.5l-9 9",
  next: "M6 8l4 4 4-4",
  previous: "M6 12l4-4 4 4",
  back: "M12 5.5L7.5 10l4.5 4.5",
  person: "M10 4.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6zM4.5 16a5.5 5.5 0 0 1 11 0",
  settings:
    "M4 6.5h6.2M13.8 6.5H16M12 4.7a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6zM4 13.5h2.2M9.8 13.5H16M8 11.7a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6z",
  saved: "M6 4h8v12.2L10 13.4l-4 2.8z",
  keys: "M3 6h14v8H3zM5.6 8.6h.01M8.2 8.6h.01M10.8 8.6h.01M13.4 8.6h.01M6.8 11.4h6.4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth={1.4}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
