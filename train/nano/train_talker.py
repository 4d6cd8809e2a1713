"""Stage 7: the TTS language model, on the thinker's states and the codec's tokens. usage: python -m nano.train_talker CPU_SECONDS PEAK_LR

Needs mean.pt or joint.pt, and codec.pt, or else the shipped model. Each sentence is learnt in the two forms that the server uses: full-duplex units of 25 tokens, and
the groups of ten text tokens of a streamed chat answer."""
import math, random, sys
import torch
import torch.nn.functional as F
from . import layouts, scenes, shipped_speech, speech
from .evaluate import load
from .half import Fast, worthwhile
from .optim import Optimizer, schedule
from .questions import Question, typed
from .run import Clock, Log, newest, save, work
from .shipped import folder
from .talker import END, Talker
from .together import Crew
from .tokenizer import Text
from .voice import UNIT
from .voice_data import corpus, utterance

GROUP = 10  # LLM tokens of a streamed group
BATCH = 24
RENEWED, UNSTATED, BLUR = .15, .25, .3  # share of forms that are redrawn; share of samples without states; noise added to other states
UNUSED = 300    # how many of the thousands of unused codes are pushed down per step
SPOILT = .06    # share of input speech tokens that are replaced by wrong ones, as the talker will sometimes sample them
LEVEL = .01     # penalty on log-sum-exp: logits that are log-probabilities hardly move under the server's repetition penalty, which steady vowels would suffer from


class Sentences:
    """The corpus as speech tokens. Ends of turns are padded to whole units with the silence token.
    A repeated sentence reuses its first recording: two readings by espeak differ in a third of the tokens, and nothing in the input tells them apart."""

    def __init__(self, name, tokenizer):
        data = corpus(name)
        self.questions, self.words = [Question(*q) for q in data["questions"]], data["words"]
        with torch.no_grad():
            first = {}
            chosen = [first.setdefault(q.answer, i) for i, q in enumerate(self.questions)]
            codes = {i: speech.codes(tokenizer(utterance(data, i)[0])[0]).tolist() for i in first.values()}
            self.codes, self.words = [codes[i] for i in chosen], [self.words[i] for i in chosen]
        self.silence = self.codes[0][0]

    def __len__(self):
        return len(self.codes)


def duplex_form(text, r, question, codes, silence):
    """(LLM ids, groups) for a session with one turn; groups = [(positions of the unit's words, speech tokens,
    ends)]."""
    length = int((len(question.text) * 6.5 + 15) * r.uniform(.8, 1.3))
    scene = scenes.make(text, r, [(length, question.text, question.answer)], late=.1, tail=0)
    ids, _ = layouts.duplex(text, scene, r.choice(layouts.SYSTEM))
    rows = iter(layouts.rows_as_tokens(text, r, scene))
    units = sorted(scene.say)
    starts = [i for i, t in enumerate(ids) if t == text.id["<unit>"]]
    codes, groups = codes + [silence] * max(0, UNIT * (len(units) - 1) + 1 - len(codes)), []
    for k, u in enumerate(units):
        tokens, last = scene.say[u]
        first = starts[u] + 12  # <unit>, ten rows, <|speak|>
        assert ids[first:first + len(tokens)] == tokens
        groups.append((list(range(first, first + len(tokens) + last)), codes[k * UNIT:] if last else codes[k * UNIT:(k + 1) * UNIT], last))
    return [next(rows) if t == layouts.ROW else t for t in ids], groups


def chat_form(text, r, question, codes, starts):
    """(LLM ids, groups) for a typed question. A group's sound ends where the first word begins that is not entirely in
    the group. starts: [(offset of a word, token at which it begins)]."""
    ids, weights = layouts.chat(text, r, [typed(r, question)], kind=r.choice([0, 0, 1, 2]))
    first = next(i for i, w in enumerate(weights) if w)
    words = text.encode(question.answer)
    groups, done = [], 0
    for at in range(0, len(words), GROUP):
        part = words[at:at + GROUP]
        last = at + GROUP >= len(words)
        place = question.answer.rfind(" ", 0, len(text.decode(words[:at + GROUP])) + 1) + 1
        end = len(codes) if last else max(done, next((token for p, token in starts if p >= place), len(codes)))
        groups.append((list(range(first + at, first + at + len(part))), codes[done:end], last))
        done = end
    return ids, groups


def assemble(text, talker, groups, duplex, spoilt=0):
    """One sentence as talker input: (rows [T,d], targets [T], -1 = none). Inputs and targets follow docs/model/talker.md 3 and 4. groups = [(words' ids, their
    states, speech tokens, ends)]. spoilt: share of input tokens that are replaced by another one of the group."""
    rows, targets = [], []
    mark = lambda name: talker.emb_text.weight[text.id[name]][None]
    for words, states, codes, last in groups:
        rows += [talker.condition(words, states), *([mark("</perception>")] if last and not duplex else []), mark("<focus>")]
        targets += [-1] * (len(words) + (last and not duplex))
        fed = torch.tensor(codes, dtype=torch.long)
        if spoilt and codes:
            fed = torch.where(torch.rand(len(fed)) < spoilt, fed[torch.randint(len(fed), fed.shape)], fed)
        rows.append(talker.emb_code[0](fed))
        ends = last or not duplex
        targets += codes + ([END] if ends else [-1])
    return torch.cat(rows), torch.tensor(targets)


class Samples:
    """Sentences in several forms each, drawn once and kept with the thinker's states at their words."""

    def __init__(self, text, thinker, sentences, forms=3):
        self.text, self.sentences, self.forms = text, sentences, forms
        self.fast = thinker.llm.bfloat16() if worthwhile() else thinker.llm
        self.made = [[] for _ in range(len(sentences))]

    @torch.no_grad()
    def draw(self, r, chosen, duplex=None):
        """Makes one more form of each chosen sentence; duplex: which form, or None to choose at random."""
        made = []
        for i in chosen:
            kind, q, codes = r.random() < .7 if duplex is None else duplex, self.sentences.questions[i], self.sentences.codes[i]
            made.append((*(duplex_form(self.text, r, q, codes, self.sentences.silence) if kind else chat_form(self.text, r, q, codes, self.sentences.words[i])), kind))
        ids = torch.zeros(len(made), max(len(m[0]) for m in made), dtype=torch.long)
        for b, (row, _, _) in enumerate(made):
            ids[b, :len(row)] = torch.tensor(row)
        states = self.fast(self.fast.model.embed_tokens(ids)).float()
        return [([(ids[b, places], states[b, places], codes, last) for places, codes, last in groups], kind) for b, (_, groups, kind) in enumerate(made)]

    def __call__(self, r, chosen):
        short = [i for i in chosen if len(self.made[i]) < self.forms or r.random() < RENEWED]
        for i, sample in zip(short, self.draw(r, short) if short else []):
            self.made[i] = [*self.made[i][1 - self.forms:], sample]
        return [blurred(r, r.choice(self.made[i])) for i in chosen]


def blurred(r, sample):
    """The same sample with noise in the states, or without states: the words carry the content, and states from few
    conversations would be memorised."""
    groups, kind = sample
    keep = r.random() > UNSTATED
    return [(words, keep * (states + BLUR * states.std() * torch.randn_like(states)), codes, last) for words, states, codes, last in groups], kind


def scores(talker, rows, targets, used):
    """Logits of the codes in `used` plus a few others as a sample of the rest, and the targets' places among them: the
    whole head would take half of a step."""
    others = torch.ones(END + 1, dtype=torch.bool).index_fill(0, used, False).nonzero()[:, 0]
    chosen = torch.cat([used, others[torch.randint(len(others), (UNUSED,))]])
    logits = F.linear(rows, talker.head_code[0].weight[chosen]).float()
    stand_for = F.pad(torch.zeros(len(used)), (0, UNUSED), value=math.log(len(others) / UNUSED))
    return logits + stand_for, torch.zeros(END + 1, dtype=torch.long).index_copy(0, used, torch.arange(len(used)))[targets]


def loss_of(text, talker, samples, spoilt=0, level=0, used=None):
    """Mean loss per speech token, and the share of tokens guessed correctly. used: the codes that occur, if not all are
    to be scored."""
    parts = [assemble(text, talker, *sample, spoilt) for sample in samples]
    rows, targets = (torch.nn.utils.rnn.pad_sequence(x, batch_first=True, padding_value=v) for x, v in zip(zip(*parts), (0, -1)))
    keep = targets >= 0
    states, targets = talker(rows)[keep], targets[keep]
    logits, targets = (talker.head_code[0](states).float(), targets) if used is None else scores(talker, states, targets, used)
    return F.cross_entropy(logits, targets) + level * logits.logsumexp(-1).pow(2).mean(), (logits.argmax(-1) == targets).float().mean()


@torch.no_grad()
def check(text, talker, tests):
    """(loss, share of tokens guessed correctly) on the held-out sentences of the domain."""
    chosen = [i for i, q in enumerate(tests.sentences.questions) if q.intent != "repeat"]
    return [float(x) for x in loss_of(text, talker, tests.draw(random.Random(1), chosen))]


def main():
    budget, peak = float(sys.argv[1]), float(sys.argv[2])
    torch.set_num_threads(1)
    crew = Crew()
    torch.manual_seed(7)
    codec = work() / "codec.pt"
    (thinker, text), talker, path, log = load(newest("mean.pt", "joint.pt") or folder()), Talker(), work() / "talker.pt", Log("talker")
    tokenizer = speech.SpeechTokenizer()
    tokenizer.load_state_dict(torch.load(codec, map_location="cpu")["tokenizer"] if codec.exists() else shipped_speech.tokenizer())
    train, tests = (Samples(text, thinker, Sentences(name, tokenizer)) for name in ("voice", "voice_test"))
    opt, r = Optimizer(talker, [""]), random.Random()
    step, clock, state = 0, Clock(), torch.load(path, map_location="cpu") if path.exists() else None
    if state:
        talker.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        step, clock = state["step"], Clock(state["seconds"])
    elif shipped := shipped_speech.talker():
        talker.load_state_dict(shipped)
    r.seed(step + 100_000 * crew.rank)
    torch.manual_seed(step + 100_000 * crew.rank)
    fast = Fast(talker)
    keep = lambda: save(path, model=talker.state_dict(), opt=opt.state_dict(), step=step, seconds=clock())
    sums, count, used = torch.zeros(2), 0, torch.tensor(sorted({c for codes in train.sentences.codes for c in codes} | {END}))
    while (done := crew.agreed(clock.share(budget))) < 1:
        value, right = loss_of(text, fast.net, train(r, r.sample(range(len(train.made)), min(BATCH, len(train.made)))), SPOILT, LEVEL, used)
        value.backward()
        fast.collect()
        crew.average(opt.params)
        opt.step(schedule(done, step, peak))
        fast.refresh()
        step, count, sums = step + 1, count + 1, sums + torch.stack([value.detach(), right])
        if step % 50 == 0 and crew.first:
            log(step=step, s=clock(), loss=float(sums[0] / count), right=float(sums[1] / count))
            sums, count = torch.zeros(2), 0
        if step % 200 == 0 and crew.first:
            keep()
            value, right = check(text, talker, tests)
            log(step=step, s=clock(), held_loss=value, held_right=right)
    if not crew.first:
        return
    keep()
    value, right = check(text, talker, tests)
    log(step=step, s=clock(), held_loss=value, held_right=right)


if __name__ == "__main__":
    main()
