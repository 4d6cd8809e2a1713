"""espeak-ng as a library: samples, and the sample at which each word begins, which its command-line program does not
report."""
import ctypes, functools
import numpy as np
from scipy.signal import resample_poly

SYNCHRONOUS, CHARACTERS, UTF8 = 2, 1, 1
SPEED, PITCH, RANGE = 1, 3, 4  # espeak_PARAMETER
LIST_END, WORD = 0, 1          # espeak_EVENT_TYPE


class Event(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("unique", ctypes.c_uint), ("place", ctypes.c_int), ("length", ctypes.c_int), ("ms", ctypes.c_int), ("sample", ctypes.c_int), ("user", ctypes.c_void_p),
                ("id", ctypes.c_char * 8)]


CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.POINTER(Event))


class Library:
    def __init__(self):
        self.lib = ctypes.CDLL("libespeak-ng.so.1")
        self.rate = self.lib.espeak_Initialize(SYNCHRONOUS, 500, None, 0)
        assert self.rate == 22050
        self.pieces, self.words, self.voice = [], [], None
        self.callback = CALLBACK(self.take)  # kept, or it would be freed under the library's feet
        self.lib.espeak_SetSynthCallback(self.callback)

    def take(self, samples, n, events):
        if samples and n > 0:
            self.pieces.append(ctypes.string_at(samples, 2 * n))
        i = 0
        while events[i].type != LIST_END:
            if events[i].type == WORD:
                self.words.append((events[i].place - 1, events[i].sample))
            i += 1
        return 0

    def say(self, text, voice, speed, pitch, melody):
        if voice != self.voice:
            assert self.lib.espeak_SetVoiceByName(voice.encode()) == 0, voice
            self.voice = voice
        self.pieces, self.words = [], []
        for parameter, value in ((SPEED, speed), (PITCH, pitch), (RANGE, melody)):
            self.lib.espeak_SetParameter(parameter, value, 0)
        data = text.encode()
        assert self.lib.espeak_Synth(data, len(data) + 1, 0, CHARACTERS, 0, UTF8, None, None) == 0
        return np.frombuffer(b"".join(self.pieces), "<i2").astype(np.float32) / 32768, self.words


@functools.cache
def library():
    return Library()


def read(text, voice, speed, pitch, melody):
    """(float32 samples at 24 kHz, [(offset of a word in the text, sample at which it begins)]). melody: espeak's pitch
    range, 0 = flat."""
    y, words = library().say(text, voice, speed, pitch, melody)
    return resample_poly(y, 160, 147).astype(np.float32), [(place, at * 160 // 147) for place, at in words]
