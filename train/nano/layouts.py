"""Token sequences as the server feeds them: chat prompts and full-duplex units. Every builder returns (ids, weights): weight 0 = given, > 0 = a target.

ROW is the placeholder for an audio row (a vector, 10 a second); in text-only training it is the embedding of a token, see `rows_as_tokens`. SIGHT is
the placeholder for a row of a picture.
"""
from . import outside, sights, tools
from .questions import Question, copy_drill, typed, typed_question

ROW, SIGHT = -1, -2
SYSTEM = ["You are a helpful assistant."] * 4 + ["Streaming Omni Conversation."] * 2 + [
    "You are Parley, a friendly assistant.", "Answer briefly.", "You are a helpful voice assistant.", "You are a friendly assistant. Answer in English.", "Be brief and kind."]
LISTEN_WEIGHT = .3
WORDS_PER_UNIT, CHARS_PER_UNIT = 3, 17  # what a fast voice says in a second; the server itself cuts a unit at 28 characters


def pieces(text, answer):
    """Reply text -> token groups, one for each unit: at most 3 words and 17 characters, or one longer word."""
    words = []
    for i in text.encode(answer):
        piece = text.decode([i])
        if not words or piece.startswith(" "):
            words.append([[], 0])
        words[-1][0].append(i)
        words[-1][1] += len(piece)
    groups, count, chars = [], WORDS_PER_UNIT, 0
    for ids, length in words:
        if count == WORDS_PER_UNIT or chars + length > CHARS_PER_UNIT:
            groups.append([])
            count = chars = 0
        groups[-1] += ids
        count, chars = count + 1, chars + length
    return groups


def generation_prompt(text, r, kind=None):
    """The opening of a reply: (ids, end ids). kind 0 = as the server's chat stream, 1 = doubled <|im_end|>, 2 =
    thinking enabled, 3 = text only, 4 = bare."""
    kind = r.choices(range(5), [5, 3, 2, 3, 1])[0] if kind is None else kind
    prompt = ("<|im_end|>\n" if kind == 1 else "") + "<|im_start|>assistant\n" + ("" if kind in (2, 4) else "<think>\n\n</think>\n\n") + ("<|tts_bos|>" if kind < 3 else "")
    return text.encode(prompt), [text.id["<|tts_eos|>"], text.id["<|im_end|>"]] if kind < 3 else [text.id["<|im_end|>"]]


def picture(text):
    """The tokens of a picture in a prompt or a unit."""
    return [text.id["<image>"]] + [SIGHT] * sights.ROWS + [text.id["</image>"]]


def chat(text, r, questions, kind=None, system=None, shown=(), separator="\n"):
    """Rounds of one conversation. Every reply is a target; the last one follows a full generation prompt. shown: rounds
    with a picture before the question."""
    ids, weights = [], []

    def put(more, weight):
        ids.extend(more)
        weights.extend([weight] * len(more))

    system = r.choice(SYSTEM) if system is None and r.random() < .6 else system
    if system:
        put(text.encode(f"<|im_start|>system\n{system}<|im_end|>\n"), 0)
    def ask(k):
        before = picture(text) + text.encode(separator) if k in shown else []
        put(text.encode("<|im_start|>user\n") + before + text.encode(f"{questions[k].text}<|im_end|>\n"), 0)

    for k, q in enumerate(questions[:-1]):
        ask(k)
        put(text.encode("<|im_start|>assistant\n"), 0)
        put(text.encode(q.answer) + [text.id["<|im_end|>"]], 1)
        put(text.encode("\n"), 0)
    ask(len(questions) - 1)
    opening, end = generation_prompt(text, r, kind)
    put(opening, 0)
    put(text.encode(questions[-1].answer) + end, 1)
    return ids, weights


def random_chat(text, r):
    """One to eight rounds over the whole domain, a third of them copy drills, some outside of it. Long ones teach more
    answers per token. A few chats have functions to call, or a name in the system prompt."""
    kind = r.random()
    if kind < tools.SHARE:
        return tool_chat(text, r)
    rounds = r.choices([1, 2, 4, 6, 8], [30, 10, 20, 25, 15])[0]
    if kind < tools.SHARE + tools.NAME_SHARE:
        system, question = tools.name_asked(r)
        return chat(text, r, [typed_question(r) if r.random() < .5 else tools.renamed(r, question) for _ in range(rounds // 2)] + [question], system=system)
    return chat(text, r, [random_round(r) for _ in range(rounds)])


def random_round(r):
    kind = r.random()
    if kind < .34:
        return copy_drill(r)
    if kind < .34 + outside.TYPED_SHARE:
        return outside.typed(r)
    return about_picture(r, None) if r.random() < .04 else typed_question(r)


def tool_chat(text, r, kinds=tools.TRAINED):
    """A question with functions on offer: the call, or with its result the answer in words, or no call because none fits."""
    offered, question, called, returned, answer = tools.scene(r, kinds=kinds)
    system = tools.system_block(r.choice(SYSTEM) if r.random() < .6 else "", offered)
    if not called:
        return chat(text, r, [question._replace(answer=answer)], kind=r.choice([0, 3, 3, 4]), system=system)
    question = question._replace(answer=tools.call(*called))
    if r.random() < .5:
        return chat(text, r, [question], kind=r.choice([3, 3, 4]), system=system)
    result = Question(f"<tool_response>\n{returned}\n</tool_response>", answer, "result")
    return chat(text, r, [question, result], kind=r.choice([0, 3, 3, 4]), system=system)


def about_picture(r, sight, held=False, kind=None):
    """A typed question that fits the picture, or None if there is none."""
    while True:
        asked = sights.ask(r, held, kind)
        if sight is None or sights.fits(asked, sight):
            return typed(r, Question(asked.text, sights.answer(asked, sight), "sight"))


def sighted_chat(text, r, gallery):
    """One to four rounds about one or two pictures, sometimes about something else: (ids, weights, [rows of each
    picture])."""
    rounds, shown, rows, questions, sight = r.choices([1, 2, 3, 4], [40, 25, 20, 15])[0], set(), [], [], None
    for k in range(rounds):
        if k == 0 or r.random() < .2:
            sight, seen = gallery.pick(r)
            shown.add(k)
            rows.append(seen)
        other = r.random()
        questions.append(about_picture(r, sight) if other < .85 else copy_drill(r) if other < .9 else typed_question(r))
    return *chat(text, r, questions, shown=shown, separator=r.choice(["\n", "\n", ""])), rows


def duplex(text, scene, system, voice_rows=0):
    """A session: the system part, then `scene.units` units. scene.say = {unit: (token ids, last)}, scene.cut = units in
    which the reply is interrupted."""
    I = text.id
    ids = text.encode(f"<|im_start|>system\n{system}\n<|audio_start|>") + [ROW] * voice_rows + text.encode("<|audio_end|><|im_end|>")
    weights = [0] * len(ids)
    for u in range(scene.units):
        given = [I["<unit>"]] + (picture(text) if u in scene.frames else []) + [ROW] * 10
        ids += given
        weights += [0] * len(given)
        if u in scene.say:
            tokens, last = scene.say[u]
            target = [I["<|speak|>"]] + tokens + ([I["<|turn_eos|>"]] if last else []) + [I["<|chunk_eos|>"]]
            weights += [1] * len(target)
        elif u in scene.cut:
            target = [I["<|turn_eos|>"], I["<|listen|>"]]
            weights += [1, 1]
        else:
            target = [I["<|listen|>"]]
            weights += [LISTEN_WEIGHT if u > 2 else 0]
        ids += target + [I["</unit>"]]
        weights += [0]
    return ids, weights


def rows_as_tokens(text, r, scene, voice_rows=0):
    """Stand-in audio rows for text-only training: each spoken token once or twice at about its time, <|audio|> elsewhere.

    The encoder later learns (CTC) to produce the same embeddings, so the LLM can learn turn-taking before it hears."""
    blank = text.id["<|audio|>"]
    rows = [blank] * (scene.units * 10)

    def put(tokens, start, end):
        for k, t in enumerate(tokens):
            at = min(int((start + (end - start) * (k + .6 + .3 * r.random()) / len(tokens)) / 10), len(rows) - 1)
            t = r.randrange(256, text.base) if r.random() < .01 else t
            if at >= 0 and r.random() > .01:
                rows[at] = t
                if r.random() < .3 and at + 1 < len(rows):
                    rows[at + 1] = t

    for start, end, spoken in scene.audio:
        put(text.spoken(spoken), start, end)
    voice = [r.randrange(256, text.base) if r.random() < .35 else blank for _ in range(voice_rows)]
    return voice + rows
