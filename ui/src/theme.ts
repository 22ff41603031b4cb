// The design tokens of ui.md as a Mantine theme; app.css has the same values as CSS variables.
import {
  createTheme,
  Drawer,
  defaultVariantColorsResolver,
  type MantineColorsTuple,
  Modal,
} from "@mantine/core";

const accent: MantineColorsTuple = [
  "#eef2ff",
  "#dbe4ff",
  "#bfcdff",
  "#9db3ff",
  "#7c9cff",
  "#6a8bf5",
  "#5677e0",
  "#4763c2",
  "#3b519e",
  "#2f417f",
];
/** Greys towards the canvas #0b0e14, each surface some 4 % lighter. */
const dark: MantineColorsTuple = [
  "#e8eaed",
  "#b9bdc6",
  "#8f95a1",
  "#5d6472",
  "#2b3140",
  "#202634",
  "#161b26",
  "#11151e",
  "#0b0e14",
  "#07090e",
];

export const theme = createTheme({
  primaryColor: "accent",
  primaryShade: { light: 7, dark: 4 },
  colors: { accent, dark },
  fontFamily: 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif',
  fontFamilyMonospace: 'ui-monospace, "JetBrains Mono", "SF Mono", Menlo, Consolas, monospace',
  fontSizes: { xs: "12px", sm: "13px", md: "13px", lg: "15px", xl: "18px" },
  spacing: { xs: "4px", sm: "8px", md: "12px", lg: "16px", xl: "24px" },
  radius: { xs: "4px", sm: "6px", md: "6px", lg: "8px", xl: "10px" },
  defaultRadius: "sm",
  cursorType: "pointer",
  respectReducedMotion: true,
  autoContrast: true,
  components: {
    Modal: Modal.extend({ defaultProps: { closeButtonProps: { "aria-label": "Close" } } }),
    Drawer: Drawer.extend({ defaultProps: { closeButtonProps: { "aria-label": "Close" } } }),
  },
  // The contrast is computed for one scheme only; the accent is light in the dark and dark in the light.
  variantColorResolver: (input) => {
    const resolved = defaultVariantColorsResolver(input);
    const own = !input.color || input.color === "accent";
    // Danger is a dark red in both schemes: white on the light one is unreadable.
    if (input.variant === "filled" && input.color === "red")
      return { ...resolved, background: "var(--mantine-color-red-9)", hover: "#b02525", color: "#fff" };
    return input.variant === "filled" && own ? { ...resolved, color: "var(--on-accent)" } : resolved;
  },
});
