const LIGHT = matchMedia("(prefers-color-scheme: light)");

/** Dark or light: the system's choice until the button makes another. `onChange` is for what has its colours painted. */
export function followTheme(button, onChange) {
  const root = document.documentElement;
  const apply = () => {
    root.dataset.theme = localStorage.getItem("parley.theme") ?? (LIGHT.matches ? "light" : "dark");
    onChange();
  };
  LIGHT.addEventListener("change", apply);
  button.addEventListener("click", () => {
    localStorage.setItem("parley.theme", root.dataset.theme === "light" ? "dark" : "light");
    apply();
  });
  apply();
}
