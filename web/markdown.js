// The small part of Markdown that models write: paragraphs, headings, lists, quotes, code, emphasis and links. Everything else stays as it was written.

const FENCE = /^```/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const ITEM = /^\s*(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/;
const QUOTE = /^>\s?(.*)$/;
const INLINE = new RegExp(
  [
    "(?<ticks>`+)(?<code>[^`\\n]+)\\k<ticks>",
    "\\*\\*(?=\\S)(?<strong>[^\\n]+?)(?<=\\S)\\*\\*",
    "(?<![\\w*])\\*(?=[^\\s*])(?<em>[^*\\n]+?)(?<=\\S)\\*(?![\\w*])",
    "(?<!\\w)_(?=[^\\s_])(?<under>[^_\\n]+?)(?<=\\S)_(?!\\w)",
    "\\[(?<text>[^\\]\\n]+)\\]\\((?<url>https?:[^\\s()<>]+)\\)",
  ].join("|"),
  "g",
);

/** The text as an element, if it has any markup; else null. What is unfinished is shown as it is. */
export function rendered(text) {
  const blocks = blocksOf(text.split("\n"));
  if (blocks.length === 1 && blocks[0].tagName === "P" && blocks[0].childElementCount === 0) return null;
  if (blocks.every((block) => block.tagName === "P" && block.childElementCount === 0)) return null;
  return make("div", blocks);
}

function blocksOf(lines) {
  const blocks = [];
  for (let i = 0; i < lines.length; ) {
    const from = i;
    if (FENCE.test(lines[i])) {
      for (i++; i < lines.length && !FENCE.test(lines[i]); ) i++;
      blocks.push(make("pre", [make("code", [lines.slice(from + 1, i).join("\n")])]));
      i++;
    } else if (HEADING.test(lines[i])) {
      blocks.push(make("h3", inline(HEADING.exec(lines[i++])[2])));
    } else if (QUOTE.test(lines[i])) {
      while (i < lines.length && QUOTE.test(lines[i])) i++;
      blocks.push(make("blockquote", inline(lines.slice(from, i).map((line) => QUOTE.exec(line)[1]).join("\n"))));
    } else if (ITEM.test(lines[i])) {
      const numbered = ITEM.exec(lines[i])[2];
      const items = [];
      for (; i < lines.length && ITEM.test(lines[i]) && Boolean(ITEM.exec(lines[i])[2]) === Boolean(numbered); i++) items.push(make("li", inline(ITEM.exec(lines[i])[3])));
      const list = make(numbered ? "ol" : "ul", items);
      if (numbered) list.start = Number(numbered);
      blocks.push(list);
    } else {
      while (i < lines.length && lines[i].trim() && ![FENCE, HEADING, QUOTE, ITEM].some((begins) => begins.test(lines[i]))) i++;
      if (i > from) blocks.push(make("p", inline(lines.slice(from, i).join("\n"))));
      else i++; // an empty line
    }
  }
  return blocks;
}

function inline(text) {
  const nodes = [];
  let done = 0;
  for (const { 0: whole, index, groups } of text.matchAll(INLINE)) {
    nodes.push(text.slice(done, index), spanOf(groups));
    done = index + whole.length;
  }
  nodes.push(text.slice(done));
  return nodes.filter(Boolean);
}

function spanOf({ code, strong, em, under, text, url }) {
  if (code) return make("code", [code]);
  if (strong) return make("strong", inline(strong));
  if (em ?? under) return make("em", inline(em ?? under));
  const link = make("a", inline(text));
  link.href = url;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  return link;
}

function make(tag, content) {
  const element = document.createElement(tag);
  element.append(...content);
  return element;
}
