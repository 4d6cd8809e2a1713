const SHOWN = 60; // newest steps

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A canvas that fits its place on any screen, and what all charts have in common: a row of numbers, redrawn when anything changes. */
class Chart {
  values = [];
  #canvas;
  #words;

  /** `describe(values)` says in text what the picture shows. */
  constructor(canvas, readout, describe) {
    this.#canvas = canvas;
    this.#words = (values) => (readout.value = values.length ? describe(values) : "–");
    new ResizeObserver(() => this.redraw()).observe(canvas);
  }

  push(value) {
    this.values = [...this.values, value].slice(-SHOWN);
    this.show();
  }

  clear() {
    this.values = [];
    this.show();
  }

  /** Words and picture, in the present language and theme. */
  show() {
    this.#words(this.values);
    this.redraw();
  }

  redraw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    this.#canvas.width = width * devicePixelRatio;
    this.#canvas.height = height * devicePixelRatio;
    const pen = this.#canvas.getContext("2d");
    pen.scale(devicePixelRatio, devicePixelRatio);
    this.draw(pen, width, height);
  }
}

/** A filled line from 0 up; `limit` is dashed, and always in the picture when `whole`. */
export class LineChart extends Chart {
  #options;

  constructor(canvas, readout, describe, options) {
    super(canvas, readout, describe);
    this.#options = options;
  }

  draw(pen, width, height) {
    const { limit, whole, stroke } = this.#options;
    const top = Math.max(...this.values, whole ? limit : 1) * 1.08;
    const x = (i) => width - (this.values.length - 1 - i) * (width / (SHOWN - 1)) - 2;
    const y = (value) => height - 2 - (value / top) * (height - 4);
    if (limit <= top) {
      pen.strokeStyle = colour("soft");
      pen.globalAlpha = 0.6;
      pen.setLineDash([3, 4]);
      pen.beginPath();
      pen.moveTo(0, y(limit));
      pen.lineTo(width, y(limit));
      pen.stroke();
      pen.setLineDash([]);
      pen.globalAlpha = 1;
    }
    if (this.values.length === 0) return;
    pen.beginPath();
    this.values.forEach((value, i) => pen.lineTo(x(i), y(value)));
    pen.strokeStyle = pen.fillStyle = colour(stroke);
    pen.lineWidth = 2;
    pen.lineJoin = "round";
    pen.stroke();
    pen.lineTo(x(this.values.length - 1), height);
    pen.lineTo(x(0), height);
    pen.globalAlpha = 0.15;
    pen.fill();
    pen.globalAlpha = 1;
    pen.beginPath();
    pen.arc(x(this.values.length - 1), y(this.values.at(-1)), 3, 0, 2 * Math.PI);
    pen.fill();
  }
}

/** One bar a step: low where the model listened, high where it spoke; "cut" is a step that an interruption ended. */
export class Timeline extends Chart {
  draw(pen, width, height) {
    const looks = { listen: [0.25, "listen"], speak: [1, "speak"], cut: [0.6, "cut"] };
    const pitch = width / SHOWN;
    this.values.forEach((kind, i) => {
      const [part, name] = looks[kind];
      const tall = part * (height - 4);
      pen.fillStyle = colour(name);
      pen.beginPath();
      pen.roundRect(width - (this.values.length - i) * pitch, height - 2 - tall, Math.max(1, pitch - 2), tall, 2);
      pen.fill();
    });
  }
}
