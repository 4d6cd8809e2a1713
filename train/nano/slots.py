"""Questions with slots (arithmetic, days, tables …). Every value of a slot is trained; only phrasings are held out."""
from .grammar import DATA, expand, read_named

NUM = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
       "eighteen nineteen twenty").split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
LETTERS = "a b c d e f g h i j k l m n o p q r s t u v w x y z".split()
ORDINAL = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
SEASON = dict(zip(MONTHS, ["winter"] * 2 + ["spring"] * 3 + ["summer"] * 3 + ["autumn"] * 3 + ["winter"]))


def read_tables():
    """{name: [(key, value)]} of data/tables.txt; a row without "=" has the value None."""
    tables = {}
    for line in (DATA / "tables.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, rows = line.split(":", 1)
            tables[name] = [tuple(p.strip() for p in (row.split("=") + [None])[:2] if p is not None) for row in rows.split(";")]
    return tables


TABLES = read_tables()
cap = lambda text: text[0].upper() + text[1:]


def number(n):
    """0 … 99 in words."""
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    return NUM[n] if n <= 20 else tens[n // 10 - 2] + (" " + NUM[n % 10] if n % 10 else "")


def _pair(r, ok):
    while True:
        a, b = r.randrange(21), r.randrange(21)
        if ok(a, b):
            return a, b


def _add(r):
    a, b = _pair(r, lambda a, b: a + b <= 20)
    return dict(a=NUM[a], b=NUM[b]), f"{cap(NUM[a])} plus {NUM[b]} is {NUM[a + b]}."


def _sub(r):
    a, b = _pair(r, lambda a, b: b <= a)
    return dict(a=NUM[a], b=NUM[b]), f"{cap(NUM[a])} minus {NUM[b]} is {NUM[a - b]}."


def _mul(r):
    a, b = _pair(r, lambda a, b: a * b <= 20 and max(a, b) <= 10)
    return dict(a=NUM[a], b=NUM[b]), f"{cap(NUM[a])} times {NUM[b]} is {NUM[a * b]}."


def _div(r):
    b = r.randrange(1, 11)
    q = r.randrange(1, 20 // b + 1)
    return dict(a=NUM[b * q], b=NUM[b]), f"{cap(NUM[b * q])} divided by {NUM[b]} is {NUM[q]}."


def _double(r):
    a = r.randrange(1, 11)
    return dict(x=NUM[a]), f"Twice {NUM[a]} is {NUM[2 * a]}."


def _half(r):
    a = r.randrange(1, 11)
    return dict(x=NUM[2 * a]), f"Half of {NUM[2 * a]} is {NUM[a]}."


def _bigger(r):
    a, b = _pair(r, lambda a, b: a != b)
    return dict(a=NUM[a], b=NUM[b]), f"{cap(NUM[max(a, b)])} is bigger."


def _smaller(r):
    a, b = _pair(r, lambda a, b: a != b)
    return dict(a=NUM[a], b=NUM[b]), f"{cap(NUM[min(a, b)])} is smaller."


def _parity(r):
    a = r.randrange(1, 21)
    return dict(x=NUM[a]), f"{cap(NUM[a])} is {'odd' if a % 2 else 'even'}."


def _count(r):
    a = r.randrange(1, 9)
    b = a + r.randrange(2, 6)
    return dict(a=NUM[a], b=NUM[b]), cap(", ".join(NUM[a:b + 1])) + "."


def _count_to(r):
    b = r.randrange(3, 11)
    return dict(b=NUM[b]), cap(", ".join(NUM[1:b + 1])) + "."


def _count_down(r):
    a = r.randrange(3, 11)
    return dict(a=NUM[a]), cap(", ".join(NUM[a:0:-1])) + "."


def _neighbour(names, step, wrap=True):
    def sample(r):
        i = r.randrange(len(names)) if wrap else r.randrange(max(0, -step), len(names) - max(0, step))
        y = names[(i + step) % len(names)]
        return dict(x=names[i]), f"{cap(y)} comes {'after' if step > 0 else 'before'} {names[i]}."
    return sample


def _ordinal(names, what):
    def sample(r):
        i = r.randrange(len(names))
        return dict(n=ORDINAL[i]), f"The {ORDINAL[i]} {what} is {names[i]}."
    return sample


def _month_season(r):
    x = r.choice(MONTHS)
    return dict(x=x), f"{x} is in {SEASON[x]}."


def _table(name, answer):
    def sample(r):
        row = r.choice(TABLES[name])
        x, y = row[0], row[1] if len(row) > 1 else ""
        return dict(x=x), answer.format(x=cap(x), l=x, y=y, Y=cap(y) if y else "")
    return sample


def _opposite(r):
    x, y = r.choice(TABLES["opposite"])
    if r.random() < .5 and " " not in y and y not in ("used",):
        x, y = y, x
    return dict(x=x), f"The opposite of {x} is {y}."


def _repeat(words):
    def sample(r):
        text = " ".join(r.choice(words) for _ in range(r.choice([1, 1, 2, 2, 3])))
        return dict(x=text), text + "."
    return sample


ASK = "(what is|what's|how much is|tell me|calculate)"
# name: (sampler, training frames, held-out frames)
SLOTS = {
    "add": (_add, ["(what is|what's|how much is|tell me|calculate|) {a} plus {b}", "[please] add {a} and {b}", "what do you get if you add {a} and {b}", "what is the sum of {a} and {b}", "{a} and {b} together"],
            ["can you add {a} and {b}", "could you tell me {a} plus {b}", "what does {a} plus {b} make"]),
    "sub": (_sub, ["(what is|what's|how much is|tell me|calculate|) {a} minus {b}", "take {b} from {a}", "subtract {b} from {a}", "[what is] {a} take away {b}"],
            ["could you tell me {a} minus {b}", "can you take {b} from {a}", "what does {a} minus {b} make"]),
    "mul": (_mul, ["(what is|what's|how much is|tell me|calculate|) {a} times {b}", "multiply {a} (by|and) {b}", "[what is] {a} multiplied by {b}"],
            ["could you tell me {a} times {b}", "can you multiply {a} by {b}", "what does {a} times {b} make"]),
    "div": (_div, ["(what is|what's|how much is|tell me|calculate|) {a} divided by {b}", "divide {a} by {b}"],
            ["could you tell me {a} divided by {b}", "can you divide {a} by {b}"]),
    "double": (_double, ["what is (twice|double) {x}", "double {x}", "how much is twice {x}", "tell me twice {x}"], ["can you double {x}", "tell me the double of {x}"]),
    "half": (_half, ["what is half of {x}", "half of {x}", "how much is half of {x}", "tell me half of {x}"], ["can you halve {x}", "what is the half of {x}"]),
    "bigger": (_bigger, ["(what|which) is (bigger|larger|more) {a} or {b}", "is {a} or {b} bigger", "which number is bigger {a} or {b}"], ["tell me which is bigger {a} or {b}", "is {a} or {b} larger"]),
    "smaller": (_smaller, ["(what|which) is (smaller|less) {a} or {b}", "is {a} or {b} smaller", "which number is smaller {a} or {b}"], ["tell me which is smaller {a} or {b}", "is {a} or {b} less"]),
    "parity": (_parity, ["is {x} (even or odd|odd or even)", "is the number {x} even or odd"], ["tell me if {x} is even or odd", "{x} is it even or odd"]),
    "count": (_count, ["[please|can you] count from {a} to {b}", "count {a} to {b}", "numbers from {a} to {b}"], ["count up from {a} to {b}", "could you count from {a} to {b}"]),
    "count_to": (_count_to, ["[please|can you] count to {b}", "count up to {b}"], ["could you count to {b}", "let me hear you count to {b}"]),
    "count_down": (_count_down, ["[please] count down from {a}", "count backwards from {a}", "can you count down from {a}"], ["could you count down from {a}", "count back from {a}"]),
    "number_after": (_neighbour(NUM, 1, False), ["(what|which) number (comes|is) after {x}", "what comes after {x}", "the number after {x}"], ["tell me the number after {x}", "which number follows {x}"]),
    "number_before": (_neighbour(NUM, -1, False), ["(what|which) number (comes|is) before {x}", "what comes before {x}", "the number before {x}"], ["tell me the number before {x}", "what is the number before {x}"]),
    "day_after": (_neighbour(DAYS, 1), ["(what|which) day (comes|is) after {x}", "[tell me] the day after {x}", "what comes after {x}"], ["what is the day after {x}", "which day follows {x}"]),
    "day_before": (_neighbour(DAYS, -1), ["(what|which) day (comes|is) before {x}", "[tell me] the day before {x}", "what comes before {x}"], ["what is the day before {x}", "what day is just before {x}"]),
    "month_after": (_neighbour(MONTHS, 1), ["(what|which) month (comes|is) after {x}", "[tell me] the month after {x}", "what comes after {x}"], ["what is the month after {x}", "which month follows {x}"]),
    "month_before": (_neighbour(MONTHS, -1), ["(what|which) month (comes|is) before {x}", "[tell me] the month before {x}", "what comes before {x}"], ["what is the month before {x}", "what month is just before {x}"]),
    "letter_after": (_neighbour(LETTERS, 1, False), ["(what|which) letter (comes|is) after {x}", "[tell me] the letter after {x}"], ["what is the letter after {x}", "which letter follows {x}"]),
    "letter_before": (_neighbour(LETTERS, -1, False), ["(what|which) letter (comes|is) before {x}", "[tell me] the letter before {x}"], ["what is the letter before {x}", "what letter is just before {x}"]),
    "nth_month": (_ordinal(MONTHS, "month"), ["(what|which) is the {n} month", "[tell me|name] the {n} month"], ["which month is the {n}", "can you name the {n} month"]),
    "nth_day": (_ordinal(DAYS, "day"), ["(what|which) is the {n} day of the week", "[tell me|name] the {n} day of the week"], ["which day of the week is the {n}", "can you name the {n} day of the week"]),
    "month_season": (_month_season, ["(what|which) season is {x} in", "in which season is {x}", "what season is it in {x}"], ["tell me the season of {x}", "to which season does {x} belong"]),
    "opposite": (_opposite, ["(what is|what's|tell me|give me|say|) the opposite of {x}", "opposite of {x}", "what is opposite to {x}"], ["what word is the opposite of {x}", "can you tell me the opposite of {x}"]),
    "colour": (_table("colour", "{x} is {y}."), ["(what|which) (colour|color) is {x}", "(tell me|what is) the (colour|color) of {x}", "what (colour|color) does {x} have"], ["can you tell me the colour of {x}", "do you know the color of {x}"]),
    "sound": (_table("sound", "{x} says {y}."), ["what does {x} say", "what sound does {x} make", "tell me what {x} says", "how does {x} sound"], ["which sound does {x} make", "what noise does {x} make"]),
    "capital": (_table("capital", "The capital of {x} is {y}."), ["(what is|what's|tell me|name|) the capital (of|city of) {x}", "(what|which) city is the capital of {x}", "capital of {x}"], ["do you know the capital of {x}", "can you name the capital of {x}"]),
    "continent": (_table("continent", "{x} is in {y}."), ["(where|on which continent|in which continent) is {x}", "(which|what) continent is {x} (in|on)"], ["can you tell me where {x} is", "to which continent does {x} belong"]),
    "tongue": (_table("tongue", "They speak {y} in {x}."), ["(what|which) language do (they|people) speak in {x}", "what do they speak in {x}", "what is the language of {x}"], ["tell me the language of {x}", "which language is spoken in {x}"]),
    "baby": (_table("baby", "It is called a {y}."), ["what is (the baby of {x}|a baby of {x}) called", "what do you call the baby of {x}", "what is the baby of {x}", "name the baby of {x}"], ["how do you call the baby of {x}", "tell me the baby of {x}"]),
    "legs": (_table("legs", "{x} has {y} legs."), ["how many legs does {x} have", "how many legs has {x}", "count the legs of {x}", "tell me how many legs {x} has"], ["do you know how many legs {x} has", "{x} has how many legs"]),
    "kind": (_table("kind", "{x} is a kind of {y}."), ["what (kind of thing|sort of thing) is {x}", "what is {x}", "what kind of thing do you call {x}"], ["tell me what {x} is", "can you say what {x} is"]),
    "place": (_table("place", "{x} live in {y}."), ["where do {x} live", "where can i find {x}", "what is the home of {x}"], ["tell me where {x} live", "in what place do {x} live"]),
    "use": (_table("use", "You use it to {y}."), ["what is {x} (for|used for)", "what do (you|we) do with {x}", "what can i do with {x}", "why do we need {x}"], ["tell me what {x} is for", "how do people use {x}"]),
    "plural": (_table("plural", "One {l}, two {y}."), ["what is the plural of {x}", "[tell me] the plural of {x}", "one {x} two what"], ["can you tell me the plural of {x}", "give me the plural of {x}"]),
    "past": (_table("past", "The past of {l} is {y}."), ["what is the past [tense] of {x}", "[tell me] the past of {x}", "past tense of {x}"], ["can you tell me the past of {x}", "give me the past tense of {x}"]),
    "sides": (_table("sides", "{x} has {y} sides."), ["how many sides does {x} have", "how many sides has {x}", "tell me how many sides {x} has", "count the sides of {x}"], ["do you know how many sides {x} has", "{x} has how many sides"]),
    "spell": (_table("spell", "{Y}."), ["[please|can you] spell {x}", "how do you spell {x}", "spell the word {x}", "how is {x} spelled"], ["could you spell {x}", "tell me how to spell {x}"]),
    "fact_yes": (_table("yes", "Yes, it is."), ["is {x}", "tell me is {x}", "is it true is {x}"], ["please say is {x}", "now tell me is {x}"]),
    "fact_no": (_table("no", "No, it is not."), ["is {x}", "tell me is {x}", "is it true is {x}"], ["please say is {x}", "now tell me is {x}"]),
}
REPEAT = (["[please] repeat after me {x}", "repeat {x}", "[please] say {x}", "say the words {x}", "say after me {x}"], ["can you repeat {x}", "now repeat after me {x}"])
EXACT = (["Reply with exactly: {x}", "Reply with exactly '{x}'", "Reply with exactly \"{x}\"", "reply with exactly {x}", "Say exactly: {x}", "Answer with exactly: {x}", "Reply with only: {x}", "Please reply with exactly: {x}",
          "Reply with exactly this: {x}", "Reply exactly: {x}", "Reply only with: {x}", "Write exactly: {x}", "Print exactly: {x}", "Return exactly: {x}", "Output only: {x}", "Answer only with: {x}", "Please answer with exactly: {x}", "Just say: {x}", "Echo: {x}"],
         ["Respond with exactly: {x}", "Reply exactly with: {x}", "Please say exactly: {x}", "Answer exactly: {x}"])


def read_frames():
    """{name: [lines]} of data/frames.txt: further phrasings for training."""
    more = {}
    for name, frame in read_named("frames.txt"):
        more.setdefault(name, []).append(frame)
    return more


MORE = read_frames()


def plain_frames(name):
    """The phrasings of SLOTS alone, expanded."""
    return [f for line in SLOTS[name][1] for f in expand(line)]


def frames(name, held=False):
    """Expanded frames of one slot question; no training frame is a held-out one."""
    train, test = ([f for line in lines for f in expand(line)] for lines in (SLOTS[name][1] + MORE.get(name, []), SLOTS[name][2]))
    return test if held else [f for f in dict.fromkeys(train) if f not in test]
