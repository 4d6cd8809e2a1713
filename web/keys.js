const TYPED_INTO = "input:not([type=radio]), textarea";
const PRESSED_BY_SPACE = "button, summary, a";

/** Whether a key belongs to an input method, as for Chinese. In Safari the Enter that ends a composition comes after its end. */
export function composes(event) {
  return event.isComposing || event.keyCode === 229;
}

/** Calls `actions[key]` for keys that are not meant for a field, a button or a dialog; Escape always counts. */
export function onKeys(actions) {
  document.addEventListener("keydown", (event) => {
    if (composes(event)) return;
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || document.querySelector("dialog[open]")) return;
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    if (event.key !== "Escape" && event.target.closest(TYPED_INTO)) return;
    if (event.key === " " && event.target.closest(PRESSED_BY_SPACE)) return;
    event.preventDefault();
    action();
  });
}
