import { loudness } from "./microphone.js";

const COLOURS = { listening: ["listen", "listen-deep"], speaking: ["speak", "speak-deep"], idle: ["listen", "speak-deep"], deaf: ["soft", "rim"] };

/** The round thing in the middle: it breathes when idle, answers to the user's voice when listening and moves with the model's when speaking. */
export class Orb {
  #canvas;
  #level = 0;
  #target = 0;
  #still = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(canvas) {
    this.#canvas = canvas;
    requestAnimationFrame((now) => this.#frame(now));
  }

  /** A block of what sounds now, from either side. */
  hear(block) {
    this.#target = loudness(block);
  }

  #frame(now) {
    if (this.#canvas.clientWidth) this.#draw(now / 1000);
    requestAnimationFrame((next) => this.#frame(next));
  }

  #draw(seconds) {
    this.#level += (this.#target - this.#level) * 0.15;
    this.#target *= 0.97;
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const pixels = Math.min(devicePixelRatio, 2);
    if (this.#canvas.width !== Math.round(width * pixels)) this.#canvas.width = width * pixels;
    if (this.#canvas.height !== Math.round(height * pixels)) this.#canvas.height = height * pixels;
    const pen = this.#canvas.getContext("2d");
    pen.setTransform(pixels, 0, 0, pixels, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.translate(width / 2, height / 2);

    const style = getComputedStyle(this.#canvas);
    const { state, muted, paused } = document.body.dataset;
    const deaf = state === "reconnecting" || paused === "true" || (state === "listening" && muted === "true");
    const look = deaf ? "deaf" : state;
    this.#canvas.dataset.look = look;
    const [light, deep] = (COLOURS[look] ?? COLOURS.idle).map((name) => style.getPropertyValue(`--${name}`).trim());
    const time = this.#still.matches ? 0 : seconds;
    const size = Math.min(width, height) * (0.21 + 0.06 * this.#level + 0.007 * Math.sin(time * 1.6));
    for (let layer = 2; layer >= 0; layer--) {
      const radius = size * (1 + layer * (0.16 + 0.14 * this.#level));
      const fill = pen.createRadialGradient(-radius * 0.3, -radius * 0.4, radius * 0.1, 0, 0, radius);
      fill.addColorStop(0, light);
      fill.addColorStop(1, deep);
      pen.fillStyle = fill;
      pen.globalAlpha = [1, 0.22, 0.1][layer];
      this.#blob(pen, radius, time * (1 - layer * 0.25) + layer, 0.012 + 0.04 * this.#level);
      pen.fill();
    }
    pen.globalAlpha = 1;
  }

  /** A circle whose rim waves by the part `depth` of its radius. */
  #blob(pen, radius, time, depth) {
    pen.beginPath();
    for (let i = 0; i <= 96; i++) {
      const angle = (i / 96) * 2 * Math.PI;
      const wave = Math.sin(3 * angle + time * 1.3) + Math.sin(5 * angle - time * 1.7) * 0.6 + Math.sin(2 * angle + time * 0.8) * 0.8;
      const r = radius * (1 + depth * wave);
      pen.lineTo(r * Math.cos(angle), r * Math.sin(angle));
    }
    pen.closePath();
  }
}
