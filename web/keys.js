const TYPED_INTO = "input:not([type=radio]), textarea, select";
const PRESSED_BY_SPACE = "button, summary, a";

/** Whether a key belongs to an input method, as for Chinese. In Safari the Enter that ends a composition comes after its end. */
export function composes(event) {
  return event.isComposing || event.keyCode === 229;
}

/** Calls `actions[key]` for keys that are not meant for a field, a button or a dialog, and `released[key]` when one is let go; Escape always counts. */
export function onKeys(actions, released = {}) {
  const named = ({ key }) => (key.length === 1 ? key.toLowerCase() : key);
  document.addEventListener("keyup", (event) => released[named(event)]?.());
  document.addEventListener("keydown", (event) => {
    if (composes(event)) return;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const action = actions[named(event)];
    if (!action) return;
    if (event.key !== "Escape" && event.target.closest(TYPED_INTO)) return;
    // The button that has closed a dialog keeps the focus for a moment after it is gone.
    if (event.key === " " && event.target.closest(PRESSED_BY_SPACE)?.getClientRects().length) return;
    event.preventDefault();
    if (!event.repeat) action();
  });
}
