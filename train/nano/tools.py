"""Chats with functions to call, in the form of Qwen3's template, and chats in which the system prompt gives the model a name."""
import json
from .grammar import DATA
from .questions import INTENTS, TRAIN_WORDS, Question, draw, typed
from .slots import TABLES, cap, number

SHARE, NAME_SHARE = .14, .12  # of the typed chats
INVENTED = .6                # of the cities and names; with known ones alone, the model learns these instead of copying
BEFORE = "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>"
AFTER = ("\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
         "{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>")
TIME_NAMES, WEATHER_NAMES = ["get_time"] * 5 + ["current_time", "clock", "time_now", "get_current_time"], ["get_weather"] * 5 + ["weather", "current_weather", "get_forecast"]
TIME_TEXTS = ["The time of day.", "Get the current time.", "Returns the current time.", "Tells what time it is.", "Current local time", ""]
WEATHER_TEXTS = ["The weather in a city.", "Get the weather of a city.", "Returns the current weather.", "Get current weather for a location", ""]
PLACES = ["city"] * 4 + ["location", "place", "town"]
OTHER = {"play_music": "title", "set_timer": "minutes", "send_mail": "to", "turn_on_light": "room", "search": "query", "get_news": "", "open_door": "", "book_flight": "city", "translate": "text",
         "add_note": "text", "get_balance": "", "call": "person"}
CITIES = sorted({y for _, y in TABLES["capital"]} | {c.strip() for line in (DATA / "cities.txt").read_text().splitlines()[1:] for c in line.strip(";").split(";")})
HELD_CITIES = "Bergen Marseille Turin Antwerp Houston Seattle Perth Kiel Basel Malaga Cork Oxford Nagoya Lahore Hanoi".split()
TIME_ASKED = INTENTS["time"][1]
WEATHER_ASKED = ["what is the weather in {x}", "what's the weather in {x}", "how is the weather in {x}", "how's the weather in {x}", "what is the weather like in {x}", "tell me the weather in {x}", "weather in {x}",
                 "is it raining in {x}", "will it rain in {x}", "is it cold in {x}", "is it warm in {x} today", "what will the weather be in {x}", "give me the weather for {x}", "check the weather in {x}", "is it sunny in {x}",
                 "{x} weather", "{x} forecast", "weather for {x}", "forecast for {x}", "the forecast for {x}", "the weather in {x} now", "today's weather in {x}", "how warm is it in {x}", "how cold is it in {x}",
                 "is there rain in {x}", "do I need an umbrella in {x}", "please tell me the weather in {x}", "I want to know the weather in {x}", "would you tell me the forecast for {x}", "temperature in {x}"]
HELD_WEATHER = ["do you know the weather in {x}", "can you tell me the weather in {x}", "weather report for {x}"]
SKIES = "sunny cloudy rainy windy foggy snowy clear stormy".split()
NAMES = ("Anna Tom Lisa Max Eva Paul Nora Ben Julia Leo Mary Sam Emma Jack Sarah Alex Maria Peter Laura David Sophie Mark Helen Oscar Clara Simon Alice Victor Ruby Hugo Ella Felix Ivy Noah Lucy Adam Grace Oliver Jane Robin "
         "Nova Echo Iris Atlas Luna Sage Jarvis Ada Pixel Buddy").split()
HELD_NAMES = "Greta Walter Zoe Bruno Martha Kai Olga Nina Dora Otto".split()
NAMING = ["You are {x}.", "You are {x}, a friendly assistant.", "You are {x}, a helpful assistant.", "Your name is {x}.", "You are an assistant named {x}.", "You are {x}", "Your name is {x}. Be brief.", "You are called {x}."]


def invented(r):
    """A name that nobody has, of one to three syllables; two in five are made of a word."""
    if r.random() < .4:
        return r.choice(["", "", "", "", "Port ", "San ", "New ", "East "]) + r.choice(TRAIN_WORDS).capitalize() + r.choice(["", "", "ton", "burg", "ville", "field", "ham", "a", "o", "en", "er", "stad", "au", "ina"])
    start, vowel = "b c d f g h j k l m n p r s t v w y z br ch cl dr gr k qu st th tr sh".split(), "a e i o u a e i o ai ea ie oo ou ah or".split()
    end = ["", "", "n", "r", "l", "s", "m", "rt", "nd", "ck", "x", "rk", "lt", "ng", "rd", "h", "re", "la", "ne"]
    return "".join(r.choice(start) * (i > 0 or r.random() < .85) + r.choice(vowel) + r.choice(end) for i in range(r.choice([1, 2, 2, 3]))).capitalize()


def signature(name, about, parameter=""):
    """A function as OpenAI's API describes it."""
    found = dict(name=name, description=about) if about else dict(name=name)
    properties = {parameter: {"type": "string"}} if parameter else {}
    return {"type": "function", "function": dict(found, parameters=dict(type="object", properties=properties, **({"required": [parameter]} if parameter else {})))}


def system_block(system, tools):
    """The content of the system message with tools, as the template writes it."""
    return (system + "\n\n" if system else "") + BEFORE + "".join("\n" + json.dumps(t) for t in tools) + AFTER


def call(name, arguments):
    return "<tool_call>\n" + json.dumps(dict(name=name, arguments=arguments)) + "\n</tool_call>"


def clock(hour, minute):
    """The time in words."""
    return f"It is {number(hour)} " + ("o'clock." if minute == 0 else f"oh {number(minute)}." if minute < 10 else f"{number(minute)}.")


def time_result(r):
    """(what the function returns, the answer)."""
    h, m = r.randrange(24), r.choice([0, 30, 15, 45, r.randrange(60), r.randrange(60)])
    shown = f"{h:02}:{m:02}" if r.random() < .6 else f"{h}:{m:02}"
    return r.choice([shown, shown, json.dumps(dict(time=shown)), shown + ":00", f"It is {shown}."]), clock(h, m)


def weather_result(r, city):
    sky, t = r.choice(SKIES), r.randrange(-9, 39)
    degrees = ("minus " if t < 0 else "") + number(abs(t)) + (" degree" if abs(t) == 1 else " degrees")
    k = r.random()
    if k < .35:
        return sky, f"It is {sky} in {city}."
    if k < .7:
        return r.choice([f"{sky}, {t} degrees", f"{t} degrees and {sky}", f"{sky}, {t} C"]), f"It is {sky} in {city}, {degrees}."
    return json.dumps(r.choice([dict(temperature=t, sky=sky), dict(weather=sky, temperature=t), dict(city=city, temperature=t, weather=sky)])), f"It is {sky} in {city}, {degrees}."


# Shares of what is asked: the time, the weather, something else, something for which the function is missing. The weather has a city to copy, and a function that
# is missing is the hardest.
TESTED, TRAINED = [30, 40, 20, 10], [18, 54, 14, 14]


def scene(r, held=False, kinds=TESTED):
    """(tools offered, question as typed, the call's name and arguments or None, what it returns, the answer)."""
    clock_name, weather_name, place = r.choice(TIME_NAMES), r.choice(WEATHER_NAMES), r.choice(PLACES)
    time_tool, weather_tool = signature(clock_name, r.choice(TIME_TEXTS)), signature(weather_name, r.choice(WEATHER_TEXTS), place)
    others = [signature(n, "", OTHER[n]) for n in r.sample(sorted(OTHER), r.choice([0, 0, 1, 2]))]
    kind = r.choices(["time", "weather", "none", "missing"], kinds)[0]
    city = r.choice(HELD_CITIES) if held else invented(r) if r.random() < INVENTED else r.choice(CITIES)
    if kind == "time" or kind == "missing" and r.random() < .5:
        q = Question(r.choice(INTENTS["time"][2] if held else TIME_ASKED), INTENTS["time"][0], "time")
    elif kind == "none":
        q = draw(r, held=held, repeat=0)
        while q.intent in ("time", "weather"):
            q = draw(r, held=held, repeat=0)
    else:
        q = Question(r.choice(HELD_WEATHER if held else WEATHER_ASKED).format(x=city if r.random() < (.7 if held else .45) else city.lower()), INTENTS["weather"][0], "weather")
    fits = kind in ("time", "weather")
    ours = [time_tool, weather_tool] if not fits or r.random() < .5 else [time_tool if kind == "time" else weather_tool]
    tools = (ours if kind != "missing" else [t for t in ours if (t is time_tool) != (q.intent == "time")]) + others
    r.shuffle(tools)
    if kind == "missing" and not tools:
        tools = [signature("search", "", "query")]
    if not fits:
        return tools, typed(r, q) if q.intent != "weather" else q._replace(text=cap(q.text)), None, None, q.answer
    text = typed(r, q._replace(intent="")).text if kind == "time" else (cap(q.text) if r.random() < .6 else q.text) + r.choice(["?", ""])
    returned, answer = time_result(r) if kind == "time" else weather_result(r, city)
    return tools, q._replace(text=text), (clock_name, {}) if kind == "time" else (weather_name, {place: city}), returned, answer


def name_asked(r, held=False):
    """(system prompt, question): the model's name is the system prompt's."""
    x = r.choice(HELD_NAMES) if held else invented(r) if r.random() < INVENTED else r.choice(NAMES)
    question = typed(r, Question(r.choice(INTENTS["name"][2 if held else 1]), "", "name"))
    return r.choice(NAMING).format(x=x), question._replace(answer=f"My name is {x}.")


def renamed(r, question):
    """The name asked for in other words."""
    return typed(r, Question(r.choice(INTENTS["name"][1]), question.answer, "name"))
