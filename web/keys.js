const TYPED_INTO = "input:not([type=radio]), textarea";
const PRESSED_BY_SPACE = "button, summary, a";

/** Calls `actions[key]` for keys that are not meant for a field, a button or a dialog; Escape always counts. */
export function onKeys(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || document.querySelector("dialog[open]")) return;
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    if (event.key !== "Escape" && event.target.closest(TYPED_INTO)) return;
    if (event.key === " " && event.target.closest(PRESSED_BY_SPACE)) return;
    event.preventDefault();
    action();
  });
}
