// The page's entry point: language, theme, query client, router. Nothing else lives here.
import { MantineProvider } from "@mantine/core";
import { LOCALE } from "./locale";
import "@mantine/core/styles.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./app.css";
import { questions } from "./api/queries";
import { applyMotion } from "./motion";
import { router } from "./router";
import { theme } from "./theme";
import { logOnce } from "./widgets/ErrorBoundary";

applyMotion();
document.documentElement.dataset.locale = LOCALE;
const root = document.getElementById("root");
if (root) {
  createRoot(root, { onCaughtError: logOnce }).render(
    <StrictMode>
      <MantineProvider theme={theme} defaultColorScheme="dark">
        <QueryClientProvider client={questions}>
          <RouterProvider router={router} />
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
