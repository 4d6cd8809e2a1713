import { words, wordsOf } from "./words.js";

const EXAMPLES = {
  nano: ["What is the capital of France?", "What is three plus four?", "What day comes after Monday?"], // the only language that it knows
};

/** Says which model answers and what it can be asked. `onExample(text)` gets what was clicked. */
export class Answers {
  #places; // {name, knows, invitation, examples}
  #onExample;
  #model = null;

  constructor(places, onExample) {
    this.#places = places;
    this.#onExample = onExample;
  }

  set model(name) {
    if (this.#model === name) return;
    this.#model = name;
    this.show();
  }

  show() {
    const { name, knows, invitation, examples } = this.#places;
    const model = this.#model;
    const texts = EXAMPLES[model] ?? [];
    name.textContent = model ? words("answers.with", { model }) : "";
    knows.textContent = model ? wordsOf("answers", model, words("answers.other", { model })) : "";
    invitation.textContent = texts.length ? words("answers.try") : "";
    examples.replaceChildren(...texts.map((text) => this.#item(text)));
  }

  #item(text) {
    const button = document.createElement("button");
    button.type = "button";
    button.lang = "en";
    button.textContent = text;
    button.addEventListener("click", () => this.#onExample(text));
    const item = document.createElement("li");
    item.append(button);
    return item;
  }
}
