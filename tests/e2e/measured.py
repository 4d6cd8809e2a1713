"""What of a page can be measured: contrast of its texts, size of what is pressed, width, and what a screen reader is told."""
import json

# The colour that lies behind an element: those of its ancestors, one over the other. Where a gradient or a picture lies behind it, nothing is said.
CONTRASTS = """(() => {
    const pen = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
    const read = (colour) => {
        pen.clearRect(0, 0, 1, 1);
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data].map((value) => value / 255);
    };
    const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
    const luminance = (colour) => {
        const [r, g, b] = colour.map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ratio = (a, b) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);
    const behind = (element) => {
        if (element.id === 'stage' && !document.getElementById('preview').hidden) return [[0, 0, 0], [1, 1, 1]]; // whatever a camera shows
        if (element === document.body) return [['--ground'], ['--glow']].map(([name]) => read(getComputedStyle(element).getPropertyValue(name)).slice(0, 3));
        const { backgroundColor, backgroundImage } = getComputedStyle(element);
        if (backgroundImage !== 'none' || element.tagName === 'VIDEO') return null;
        return behind(element.tagName === 'DIALOG' ? document.body : element.parentElement)?.map((below) => over(read(backgroundColor), below));
    };
    const least = (element, colour, opacity, grounds) => {
        const ink = read(colour);
        return Math.min(...grounds.map((ground) => ratio(over([...ink.slice(0, 3), ink[3] * opacity], ground), ground)));
    };
    const found = [];
    for (const element of document.querySelectorAll('body *')) {
        const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join('') || (element.value === '' && element.placeholder);
        if (!text || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || element.closest(':disabled, .unseen, input:disabled + span')) continue;
        const grounds = behind(element);
        if (!grounds) continue;
        const style = getComputedStyle(element, element.value === '' ? '::placeholder' : null);
        let opacity = element.value === '' ? +style.opacity : 1;
        for (let at = element; at; at = at.parentElement) opacity *= +getComputedStyle(at).opacity;
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || (size >= 18.66 && +style.fontWeight >= 700);
        found.push({ text, ratio: least(element, style.color, opacity, grounds), needed: large ? 3 : 4.5 });
    }
    return found;
})()"""

# What a finger hits: a field's label belongs to it. A link inside a line of text may be as high as the line.
TARGETS = """[...document.querySelectorAll('button, input, textarea, summary, a, select')]
    .filter((element) => (element.closest('label') ?? element).checkVisibility({ visibilityProperty: true }) && !element.closest('footer li, dialog:not([open])'))
    .map((element) => {
        const label = element.closest('label');
        const box = (label && !element.matches('textarea, [type=text], [type=password]') ? label : element).getBoundingClientRect();
        return { name: element.id || element.name || element.value || element.textContent, width: box.width, height: box.height };
    })"""

WIDE = """[...document.querySelectorAll('body *')]
    .filter((element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !element.closest('.unseen, #stage canvas'))
    .map((element) => [element.id || element.className || element.tagName, element.getBoundingClientRect()])
    .filter(([, box]) => box.width && (box.right > innerWidth + 0.5 || box.left < -0.5)).map(([name, box]) => [name, box.left, box.right])"""

CONTROLS = {"button", "textbox", "checkbox", "radio", "link", "slider", "DisclosureTriangle", "img", "image"}


def faint(page) -> list[dict]:
    """Texts with less contrast than WCAG 2 asks for (AA)."""
    found = page.evaluate(CONTRASTS)
    assert len(found) >= 5
    return [text for text in found if text["ratio"] < text["needed"]]


def small(page, least: float = 40) -> list[dict]:
    """What is too small for a finger."""
    found = page.evaluate(TARGETS)
    assert len(found) >= 3
    return [target for target in found if min(target["width"], target["height"]) < least]


def wide(page) -> list:
    """What reaches over the edge of the screen."""
    return page.evaluate(WIDE)


def tree(page) -> list[dict]:
    """What a screen reader is given: role, name and description of all that is shown."""
    value = lambda node, name: str(node.get(name, {}).get("value", "")).strip()
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    return [
        {name: value(node, name) for name in ("role", "name", "description")} | {p["name"]: p["value"].get("value") for p in node.get("properties", [])}
        for node in nodes
        if not node["ignored"]
    ]


def unnamed(page) -> list[str]:
    """What a screen reader would have no name for."""
    shown = [node for node in tree(page) if node["role"] in CONTROLS]
    assert len(shown) >= 5
    return [json.dumps(node) for node in shown if not node["name"]]
