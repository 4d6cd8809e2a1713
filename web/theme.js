import { kept } from "./kept.js";

const LIGHT = matchMedia("(prefers-color-scheme: light)");

/** Dark or light: the system's choice until the button makes another. `onChange` is for what has its colours painted. */
export function followTheme(button, onChange) {
  const root = document.documentElement;
  const apply = () => {
    root.dataset.theme = kept.get("theme") ?? (LIGHT.matches ? "light" : "dark");
    document.querySelector("meta[name=theme-color]").content = getComputedStyle(root).getPropertyValue("--ground").trim();
    onChange();
  };
  LIGHT.addEventListener("change", apply);
  button.addEventListener("click", () => {
    kept.set("theme", root.dataset.theme === "light" ? "dark" : "light");
    apply();
  });
  apply();
}
